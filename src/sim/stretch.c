/* stretch.c - many bundles of all workers at once, in the loops of matrix products.
 *
 * The bundles of a GEMM are paced loads and stores beside AMP issues. Which addresses they touch
 * depends only on a packed pair of addresses and on strides that nothing else in them writes. The
 * one idea: so the addresses of the next hundred bundles of every worker are computed ahead,
 * checked for everything that could fault, and compared. Where no worker stores what another one
 * touches, their order can not matter, and each executes all its bundles in one call, with its
 * accumulators in the host's registers; else they take turns as always, only with less ado.
 * Whatever is not like this, or would fault, is left to the ordinary loop, which comes to it in its
 * time. */
#include "sim/core.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST = 128, /* bundles a worker */
    LEAST = 4,
    POINTERS = 3, /* loads 0 and 1, store */
    SPANS = 4,    /* of a pointer */
    ADDRESS_MASK = 0x1fffff,
    CONTROL_REFUSED = 7 | 1 << 19 /* FP_CTL: exceptions, stochastic rounding */
};

typedef struct Place { /* of a worker in its code */
    uint32_t pc, loop_end, repeat_first, repeat_end, repeat_count;
} Place;

/* The bundles that workers in one place and state execute next. */
typedef struct Path {
    uint32_t count;
    FloatStretch *run;  /* of the AMP issues on it, NULL: none */
    int32_t pair;       /* register of the packed addresses, -1: none */
    int32_t counter;    /* register that an rpt on the way has read, -1: none */
    uint32_t counted;   /* its value then */
    uint32_t first_rpt; /* its bundle */
    uint32_t low, high; /* offsets of the code */
    const FloatOp *ops[MOST];
    uint16_t even[MOST];    /* so many bundles from here on are alike and step by one word */
    Place places[MOST + 1]; /* before each bundle */
} Path;

typedef struct Span { /* offsets: the first byte, one past the last */
    uint32_t low, high;
} Span;

typedef struct Course { /* of one worker on its path */
    Context *c;
    const Path *path;
    FloatAccess accesses[MOST + 1]; /* before each bundle */
    Span spans[POINTERS][SPANS];
    uint32_t span_count[POINTERS];
} Course;

struct Stretch {
    Path paths[TILE_WORKERS];
    Course courses[TILE_WORKERS];
    uint32_t path_count, course_count;
};

Stretch *stretch_create(void)
{
    return xcalloc(1, sizeof(Stretch));
}

void stretch_destroy(Stretch *stretch)
{
    free(stretch);
}

/* --- the path: which bundles come */

static Place place_of(const Context *c)
{
    return (Place){c->pc, c->loop_end, c->repeat_first, c->repeat_end, c->repeat_count};
}

static bool in_pair(const Path *path, int32_t r)
{
    return path->pair >= 0 && (r & ~1) == path->pair;
}

/* An rpt starts its loop. False: it is one that does not. */
static bool start_loop(Path *path, const Context *c, const Decoded *d, Place *next)
{
    bool in_register = d->form == FORM_rpt_mmmn_zi;
    uint32_t value = in_register ? c->m[d->op[0]] : (uint32_t)d->op[0];
    if (!(value & 0xffff) || next->pc & 7 || path->first_rpt < MOST)
        return false;
    if (in_register) {
        if (in_pair(path, d->op[0]))
            return false;
        path->counter = d->op[0];
        path->counted = value;
    }
    path->first_rpt = path->count;
    next->repeat_first = next->pc;
    next->repeat_end = next->loop_end = next->pc + 8 * ((uint32_t)d->op[1] + 1);
    next->repeat_count = value & 0xffff;
    return true;
}

/* Whether the path can go on with this bundle. */
static bool fits(Path *path, const Decoded *d)
{
    const FloatOp *op = &d->stretch;
    if (op->run) {
        if (path->run && path->run != op->run)
            return false;
        path->run = op->run;
    }
    if (!(op->kind & FLOAT_ACCESSES))
        return true;
    if (path->pair >= 0)
        return path->pair == d->op[1] && !in_pair(path, op->stride);
    path->pair = d->op[1];
    return !in_pair(path, op->stride);
}

/* The worker is back at the first bundle of a body that the path has just been through: nothing has
 * changed since, so all rounds but the last are the same again. */
static void repeat_body(Path *path, uint32_t most)
{
    Place place = path->places[path->count];
    uint32_t body = (place.loop_end - place.repeat_first) / 8;
    if (body == 0 || body > path->count)
        return;
    const Place *start = &path->places[path->count - body];
    if (start->pc != place.pc || start->loop_end != place.loop_end ||
        start->repeat_first != place.repeat_first)
        return;
    while (place.repeat_count > 1 && path->count + body <= most) {
        for (uint32_t i = 0; i < body; i++, path->count++) {
            path->ops[path->count] = path->ops[path->count - body];
            path->places[path->count] = path->places[path->count - body];
            path->places[path->count].repeat_count = place.repeat_count;
        }
        place.repeat_count--;
        path->places[path->count] = place;
    }
}

static void find_path(Path *path, const Tile *tile, Cache *cache, const Context *c, uint32_t most)
{
    Place place = place_of(c);
    path->count = 0;
    path->run = NULL;
    path->pair = path->counter = -1;
    path->first_rpt = MOST;
    path->low = UINT32_MAX;
    path->high = 0;
    path->places[0] = place;
    while (path->count < most) {
        const Decoded *d = cache_worker(cache, tile, place.pc);
        Place next = place;
        next.pc += 8;
        if (!d->foreseen || (place.loop_end && !d->body) || !fits(path, d))
            break;
        if (!d->body && !start_loop(path, c, d, &next))
            break;
        if (next.pc == place.loop_end) {
            if (--next.repeat_count)
                next.pc = next.repeat_first;
            else
                next.loop_end = 0;
        }
        path->low = min_u32(path->low, place.pc - SRAM_BASE);
        path->high = max_u32(path->high, place.pc - SRAM_BASE + 8);
        path->ops[path->count++] = &d->stretch;
        path->places[path->count] = next;
        if (next.loop_end && next.pc == next.repeat_first)
            repeat_body(path, most);
        place = path->places[path->count];
    }
}

static void find_even_parts(Path *path)
{
    for (uint32_t i = path->count; i-- > 0;) {
        const FloatOp *op = path->ops[i];
        bool alike = i + 1 < path->count && op->pace == 0 && path->ops[i + 1]->pace == 0 &&
                     !((op->kind ^ path->ops[i + 1]->kind) & FLOAT_ACCESSES);
        path->even[i] = alike ? (uint16_t)(path->even[i + 1] + 1) : 1;
    }
}

static bool same_path(const Path *path, const Context *c)
{
    Place place = place_of(c);
    if (path->counter >= 0 && c->m[path->counter] != path->counted)
        return false;
    if (!place.loop_end)
        return place.pc == path->places[0].pc && !path->places[0].loop_end;
    return memcmp(&place, &path->places[0], sizeof place) == 0;
}

static const Path *path_of(Stretch *stretch, const Tile *tile, Cache *cache, const Context *c,
                           uint32_t most)
{
    for (uint32_t i = 0; i < stretch->path_count; i++)
        if (same_path(&stretch->paths[i], c))
            return &stretch->paths[i];
    Path *path = &stretch->paths[stretch->path_count++];
    find_path(path, tile, cache, c, most);
    find_even_parts(path);
    return path;
}

/* --- the course: which addresses */

static void add_span(Course *course, uint32_t pointer, uint32_t low, uint32_t high)
{
    if (low == high)
        return;
    uint32_t count = course->span_count[pointer];
    Span *span = course->spans[pointer];
    if (count < SPANS) {
        span[count] = (Span){low - SRAM_BASE, high - SRAM_BASE};
        course->span_count[pointer]++;
    } else { /* one that covers both */
        span[SPANS - 1].low = min_u32(span[SPANS - 1].low, low - SRAM_BASE);
        span[SPANS - 1].high = max_u32(span[SPANS - 1].high, high - SRAM_BASE);
    }
}

static inline bool outside_or_misaligned(uint32_t address)
{
    return address - SRAM_BASE > SRAM_BYTES - 8 || address & 7;
}

/* Whether the accesses would go through. */
static inline bool sound(uint32_t kind, const uint32_t at[POINTERS])
{
    bool first = kind & FLOAT_LOAD, second = kind & FLOAT_LOAD_SECOND, third = kind & FLOAT_STORE;
    return !((first && outside_or_misaligned(at[0])) || (second && outside_or_misaligned(at[1])) ||
             (third && outside_or_misaligned(at[2])) ||
             (first && second && share_element(at[0], at[1])) ||
             (first && third && share_element(at[0], at[2])) ||
             (second && third && share_element(at[1], at[2])));
}

/* Two pointers that move together: whether they could come to one memory element. They never do in
 * different regions, nor when they are farther apart than an element, nor in the interleaved region
 * with an odd number of words between them. */
static inline bool may_share(uint32_t a, uint32_t b, uint32_t bytes)
{
    uint32_t low = min_u32(a, b), high = max_u32(a, b), distance = high - low;
    if (low >= INTERLEAVED_BASE)
        return !(distance & 8) && distance < INTERLEAVED_ELEMENT_BYTES;
    if (high >= INTERLEAVED_BASE)
        return low + bytes > INTERLEAVED_BASE;
    return distance < ELEMENT_BYTES || high + bytes > INTERLEAVED_BASE;
}

/* The same as sound() for many bundles in which all pointers used move by a word. False when it is
 * not so sure. */
static inline bool sound_for(uint32_t kind, const uint32_t at[POINTERS], uint32_t bundles)
{
    bool first = kind & FLOAT_LOAD, second = kind & FLOAT_LOAD_SECOND, third = kind & FLOAT_STORE;
    uint32_t bytes = 8 * bundles, way = bytes - 8;
    const uint32_t last[POINTERS] = {at[0] + way, at[1] + way, at[2] + way};
    for (uint32_t pointer = 0; pointer < POINTERS; pointer++)
        if (kind & FLOAT_LOAD << pointer &&
            (outside_or_misaligned(at[pointer]) || outside_or_misaligned(last[pointer])))
            return false;
    return !((first && second && may_share(at[0], at[1], bytes)) ||
             (first && third && may_share(at[0], at[2], bytes)) ||
             (second && third && may_share(at[1], at[2], bytes)));
}

typedef struct Walk {                      /* along a course */
    uint32_t at[POINTERS], from[POINTERS]; /* pointers: now, and since when word by word */
    uint32_t stride, steps[4];             /* register, and what its fields say, in bytes */
} Walk;

static void find_steps(Walk *walk, const Context *c, uint32_t stride)
{
    uint32_t fields = c->m[stride];
    walk->stride = stride;
    walk->steps[0] = 8;
    for (uint32_t i = 1; i < 4; i++)
        walk->steps[i] = (uint32_t)(((int32_t)(fields << (32 - 10 * i)) >> 22) * 8);
}

static void step(Walk *walk, Course *course, const FloatOp *op)
{
    uint32_t pace = op->pace;
    if (!(op->kind & FLOAT_ACCESSES))
        return;
    if (op->stride != walk->stride)
        find_steps(walk, course->c, op->stride);
    for (uint32_t pointer = 0; pointer < POINTERS; pointer++) {
        if (!(op->kind & FLOAT_LOAD << pointer))
            continue;
        uint32_t bytes = walk->steps[pace & 3], at = walk->at[pointer];
        pace >>= 2;
        walk->at[pointer] = (at + bytes) & ADDRESS_MASK;
        if (bytes != 8) {
            add_span(course, pointer, walk->from[pointer], at + 8);
            walk->from[pointer] = walk->at[pointer];
        }
    }
}

static inline FloatAccess access_at(const uint32_t at[POINTERS])
{
    return (FloatAccess){{at[0] - SRAM_BASE, at[1] - SRAM_BASE}, at[2] - SRAM_BASE};
}

static inline void go_evenly(Walk *walk, FloatAccess *out, uint32_t kind, uint32_t bundles)
{
    uint32_t first = kind & FLOAT_LOAD ? 8 : 0, second = kind & FLOAT_LOAD_SECOND ? 8 : 0;
    uint32_t third = kind & FLOAT_STORE ? 8 : 0;
    FloatAccess access = access_at(walk->at);
    for (uint32_t i = 0; i < bundles; i++) {
        out[i] = access;
        access.load[0] += first;
        access.load[1] += second;
        access.store += third;
    }
    walk->at[0] = access.load[0] + SRAM_BASE;
    walk->at[1] = access.load[1] + SRAM_BASE;
    walk->at[2] = access.store + SRAM_BASE;
}

/* Returns for how many bundles nothing can fault. */
static uint32_t find_course(Course *course, uint32_t most)
{
    const Path *path = course->path;
    memset(course->span_count, 0, sizeof course->span_count);
    if (path->pair < 0)
        return most;
    uint32_t low = course->c->m[path->pair], high = course->c->m[path->pair + 1], i, bundles;
    Walk walk = {
        .at = {low & ADDRESS_MASK, high & ADDRESS_MASK, low >> 21 | (high >> 21 & 0x3ff) << 11},
        .stride = UINT32_MAX};
    memcpy(walk.from, walk.at, sizeof walk.from);
    for (i = 0; i < most; i += bundles) {
        const FloatOp *op = path->ops[i];
        bundles = min_u32(path->even[i], most - i);
        if (bundles > 1 && sound_for(op->kind, walk.at, bundles)) {
            go_evenly(&walk, course->accesses + i, op->kind, bundles);
            continue;
        }
        if (!sound(op->kind, walk.at))
            break;
        bundles = 1;
        course->accesses[i] = access_at(walk.at);
        step(&walk, course, op);
    }
    course->accesses[i] = access_at(walk.at);
    for (uint32_t pointer = 0; pointer < POINTERS; pointer++)
        add_span(course, pointer, walk.from[pointer], walk.at[pointer]);
    return i;
}

/* --- who meets whom */

static bool meets(const Course *course, uint32_t pointer, Span span)
{
    for (uint32_t i = 0; i < course->span_count[pointer]; i++)
        if (course->spans[pointer][i].low < span.high && span.low < course->spans[pointer][i].high)
            return true;
    return false;
}

static bool writes_code(const Stretch *stretch)
{
    for (uint32_t p = 0; p < stretch->path_count; p++)
        for (uint32_t i = 0; i < stretch->course_count; i++)
            if (meets(&stretch->courses[i], 2,
                      (Span){stretch->paths[p].low, stretch->paths[p].high}))
                return true;
    return false;
}

/* Whether some worker stores what another one touches. */
static bool workers_meet(const Stretch *stretch)
{
    for (uint32_t i = 0; i < stretch->course_count; i++) {
        const Course *storing = &stretch->courses[i];
        for (uint32_t j = 0; j < stretch->course_count; j++)
            for (uint32_t n = 0; n < storing->span_count[2] && j != i; n++)
                for (uint32_t pointer = 0; pointer < POINTERS; pointer++)
                    if (meets(&stretch->courses[j], pointer, storing->spans[2][n]))
                        return true;
    }
    return false;
}

/* --- execution */

static void execute(const Course *course, Tile *tile, FloatStretch *run, uint32_t from,
                    uint32_t count)
{
    run(&course->c->f, &tile->weights, course->c->memory, course->path->ops + from,
        course->accesses + from, count);
}

static void arrive(const Course *course, uint32_t count)
{
    Context *c = course->c;
    const Path *path = course->path;
    const Place *place = &path->places[count];
    if (path->places[0].loop_end || path->first_rpt < count) {
        c->loop_end = place->loop_end;
        c->repeat_first = place->repeat_first;
        c->repeat_end = place->repeat_end;
        c->repeat_count = place->repeat_count;
    }
    c->pc = place->pc;
    c->bundles += count;
    c->next += TILE_WORKERS * count;
    if (path->pair < 0)
        return;
    const FloatAccess *at = &course->accesses[count];
    uint32_t a0 = at->load[0] + SRAM_BASE, a1 = at->load[1] + SRAM_BASE, a2 = at->store + SRAM_BASE;
    c->m[path->pair] = a0 | a2 << 21;
    c->m[path->pair + 1] = (c->m[path->pair + 1] & 0x80000000u) | (a2 >> 11) << 21 | a1;
}

/* The workers that issue in the round from `cycle` on, in their order. 0: not all of them can. */
static uint32_t gather(Stretch *stretch, Tile *tile, Cache *cache, uint64_t cycle, uint32_t most)
{
    stretch->path_count = stretch->course_count = 0;
    for (uint32_t i = 0; i < TILE_WORKERS && most >= LEAST; i++) {
        Context *c = &tile->contexts[1 + (cycle + i) % TILE_WORKERS];
        if (c->next == NEVER)
            continue;
        if (c->next != cycle + i || c->defined || c->written || c->f.control & CONTROL_REFUSED)
            return 0;
        Course *course = &stretch->courses[stretch->course_count++];
        course->c = c;
        course->path = path_of(stretch, tile, cache, c, most);
        most = min_u32(most, course->path->count);
    }
    return most;
}

uint32_t stretch_run(Stretch *stretch, Tile *tile, Cache *cache, uint64_t cycle, uint64_t until)
{
    uint64_t rounds = (until - cycle) / TILE_WORKERS;
    uint32_t count = gather(stretch, tile, cache, cycle, rounds < MOST ? (uint32_t)rounds : MOST);
    FloatStretch *run = NULL;
    for (uint32_t i = 0; i < stretch->course_count && count >= LEAST; i++) {
        Course *course = &stretch->courses[i];
        count = find_course(course, count);
        if (course->path->run && run && course->path->run != run)
            return 0;
        run = course->path->run ? course->path->run : run;
    }
    if (count < LEAST || !run || writes_code(stretch))
        return 0;
    bool meet = workers_meet(stretch);
    uint32_t turn = meet ? 1 : count;
    *(meet ? &cache->in_turns : &cache->alone) += (uint64_t)count * stretch->course_count;
    for (uint32_t from = 0; from < count; from += turn)
        for (uint32_t i = 0; i < stretch->course_count; i++)
            execute(&stretch->courses[i], tile, run, from, turn);
    for (uint32_t i = 0; i < stretch->course_count; i++)
        arrive(&stretch->courses[i], count);
    return count;
}

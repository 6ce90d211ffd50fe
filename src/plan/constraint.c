/* constraint.c - pins and excludes of the user: what a product's plan must or must not be.
 *
 * A list of OPERATION:KEY=VALUE and OPERATION:KEY!=VALUE, separated by commas. An operation is a
 * key of the graph, or a pattern with `*`. Candidates that break one are not made; when that leaves
 * none, the error says which single constraint to drop. */
#include "plan/internal.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>

typedef enum Key {
    KEY_GRID,
    KEY_ROWS,
    KEY_COLUMNS,
    KEY_INNER,
    KEY_SWAPPED,
    GRID_KEYS,
    KEY_SCATTER = GRID_KEYS,
    KEY_SLICES,
    KEYS
} Key;
static const char *const key_names[KEYS] = {"grid",    "rows",    "columns", "inner",
                                            "swapped", "scatter", "slices"};

struct PlanConstraint {
    const char *text, *operation;
    uint8_t key;
    bool excludes;
    uint32_t value[3];
};

/* ---- the text ---- */

static bool read_numbers(const char *text, uint32_t count, uint32_t *out)
{
    for (uint32_t i = 0; i < count; i++) {
        char *end;
        errno = 0;
        unsigned long value = strtoul(text, &end, 10);
        if (*text < '0' || *text > '9' || errno || value < 1 || value > TILES ||
            *end != (i + 1 < count ? 'x' : '\0'))
            return false;
        out[i] = (uint32_t)value;
        text = end + 1;
    }
    return true;
}

static bool read_word(const char *text, const char *const *words, uint32_t count, uint32_t *out)
{
    for (*out = 0; *out < count; ++*out)
        if (!strcmp(text, words[*out]))
            return true;
    return false;
}

static Status read_value(PlanConstraint *c, const char *value)
{
    static const char *const answers[] = {"no", "yes"};
    bool good;
    if (c->key == KEY_GRID)
        good = read_numbers(value, 3, c->value);
    else if (c->key == KEY_SWAPPED)
        good = read_word(value, answers, countof(answers), c->value);
    else if (c->key == KEY_SCATTER)
        good = read_word(value, plan_scatter_names, PLAN_SCATTERS, c->value);
    else
        good = read_numbers(value, 1, c->value);
    if (good)
        return STATUS_OK;
    return status_error("plan constraint %s: %s is expected", c->text,
                        c->key == KEY_GRID      ? "ROWSxCOLUMNSxINNER, each 1 to 1472,"
                        : c->key == KEY_SWAPPED ? "yes or no"
                        : c->key == KEY_SCATTER ? "no, rows, columns or shares"
                                                : "a number from 1 to 1472");
}

static Status read_one(Arena *arena, char *item, PlanConstraint *c)
{
    c->text = arena_strdup(arena, item);
    char *equals = strchr(item, '='), *colon = strrchr(item, ':');
    if (!equals || !colon || colon > equals || colon == item)
        return status_error("plan constraint %s: OPERATION:KEY=VALUE or OPERATION:KEY!=VALUE is "
                            "expected",
                            c->text);
    c->excludes = equals > colon && equals[-1] == '!';
    equals[c->excludes ? -1 : 0] = *colon = '\0';
    uint32_t key;
    if (!read_word(colon + 1, key_names, KEYS, &key))
        return status_error("plan constraint %s: the key is grid, rows, columns, inner, swapped, "
                            "scatter or slices",
                            c->text);
    c->key = (uint8_t)key;
    c->operation = arena_strdup(arena, item);
    return read_value(c, equals + 1);
}

static bool applies(const PlanConstraint *c, const char *operation)
{
    return fnmatch(c->operation, operation, 0) == 0;
}

static Status check_operation(const Graph *graph, const PlanConstraint *c)
{
    const Operation *first = NULL;
    for (size_t i = 0; i < graph->operations.count; i++) {
        const Operation *o = &graph->operations.items[i];
        if (o->kind != OP_GEMM)
            continue;
        first = first ? first : o;
        if (applies(c, o->key))
            return STATUS_OK;
    }
    return status_error("plan constraint %s: no product is called that; one is %s", c->text,
                        first ? first->key : "missing in this graph");
}

Status constraints_read(Arena *arena, const Graph *graph, const char *text, PlanConstraint **out,
                        uint32_t *count)
{
    *count = 0;
    if (!text)
        return STATUS_OK;
    char *items = arena_strdup(arena, text), *rest = items;
    *out = arena_array(arena, PlanConstraint, strlen(text) / 2 + 1);
    for (char *item; (item = strtok_r(rest, ", ", &rest)) != NULL;) {
        PlanConstraint *c = &(*out)[(*count)++];
        TRY(read_one(arena, item, c));
        TRY(check_operation(graph, c));
    }
    return *count ? STATUS_OK : status_error("plan constraint: there is none in \"%s\"", text);
}

/* ---- the check ---- */

static bool keeps(const PlanConstraint *c, const OpPlan *plan)
{
    const uint32_t numbers[KEYS] = {0,
                                    plan->rows,
                                    plan->columns,
                                    plan->inner,
                                    plan->swapped,
                                    plan->scatter,
                                    max_u32(plan->slices, 1)};
    bool same = numbers[c->key] == c->value[0];
    if (c->key == KEY_GRID)
        same =
            plan->rows == c->value[0] && plan->columns == c->value[1] && plan->inner == c->value[2];
    return same != c->excludes;
}

static bool allowed_but(const Planner *p, const OpPlan *plan, bool grid_only, uint32_t skip)
{
    for (uint32_t i = 0; i < p->constraint_count; i++) {
        const PlanConstraint *c = &p->constraints[i];
        if (i != skip && (!grid_only || c->key < GRID_KEYS) && applies(c, plan->key) &&
            !keeps(c, plan))
            return false;
    }
    return true;
}

bool constraints_allow(const Planner *p, const OpPlan *plan, bool grid_only)
{
    return allowed_but(p, plan, grid_only, UINT32_MAX);
}

/* How far from what is wanted: the sum of the differences of what grids are made of. */
static uint32_t distance(const PlanConstraint *c, const OpPlan *plan)
{
    const uint32_t have[3] = {plan->rows, plan->columns, plan->inner};
    uint32_t sum = 0;
    for (uint32_t i = 0; i < 3; i++)
        if (c->key == KEY_GRID || c->key == KEY_ROWS + i) {
            uint32_t want = c->value[c->key == KEY_GRID ? i : 0];
            sum += want > have[i] ? want - have[i] : have[i] - want;
        }
    return sum;
}

Status constraints_refuse(const Planner *p, const OpPlan *plans, size_t count)
{
    for (uint32_t i = 0; i < p->constraint_count && count; i++) {
        const PlanConstraint *c = &p->constraints[i];
        const OpPlan *nearest = NULL;
        for (size_t k = 0; k < count && applies(c, plans[k].key); k++)
            if (allowed_but(p, &plans[k], true, i) &&
                (!nearest || distance(c, &plans[k]) < distance(c, nearest)))
                nearest = &plans[k];
        if (nearest)
            return status_error("nothing keeps to %s and the other constraints; the nearest grid "
                                "without it is %ux%ux%u%s",
                                c->text, nearest->rows, nearest->columns, nearest->inner,
                                nearest->swapped ? ", swapped" : "");
    }
    return status_error("the plan constraints contradict each other: dropping a single one of them "
                        "does not help");
}

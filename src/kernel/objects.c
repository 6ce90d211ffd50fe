/* objects.c - from kernel specs to relocatable objects: one per distinct source and defines.
 *
 * Every object passes through its ELF bytes, freshly assembled or from the disk cache, so that both
 * ways give the same. The file name in the cache is a hash of everything the object depends on: the
 * tool's version, all shared include texts, the source, and the defines. */
#include "kernel/family.h"

#include <stdlib.h>
#include <string.h>

typedef struct KernelSource {
    const char *name, *text;
} KernelSource;
extern const KernelSource ipu_kernel_sources[]; /* generated, ends with a NULL name */

static const char cache_version[] = "ipu-stack kernel object 1 " IPU_VERSION;

const char *kernel_source(const char *name)
{
    for (const KernelSource *source = ipu_kernel_sources; source->name; source++)
        if (strcmp(source->name, name) == 0)
            return source->text;
    return NULL;
}

typedef struct Job {
    const char *source, *name;
    const KernelContract *contract; /* NULL: no defines (the runtime) */
    const char *cache_path;         /* NULL: no disk cache */
    Bytes elf;
    bool hit;
    Status status;
} Job;
typedef ARRAY(Job) JobArray;

/* The source's entry is "ipu_NAME" of the family; the linked program knows it by the variant's
 * name. */
static Status name_entry(const Job *job, AsObject *object)
{
    size_t stem = strlen(job->source) - strlen(".S");
    for (uint32_t i = 0; job->contract && i < object->symbol_count; i++) {
        const char *name = object->symbols[i].name;
        if (strncmp(name, "ipu_", 4) == 0 && strncmp(name + 4, job->source, stem) == 0 &&
            name[4 + stem] == 0) {
            object->symbols[i].name = job->contract->symbol;
            return STATUS_OK;
        }
    }
    return job->contract
               ? status_error("%s defines no entry ipu_%.*s", job->source, (int)stem, job->source)
               : STATUS_OK;
}

static Status assemble_job(Job *job)
{
    AsDefine defines[KERNEL_DEFINES];
    char values[KERNEL_DEFINES][16];
    AsOptions options = {.find_source = kernel_source, .supervisor = true, .defines = defines};
    for (uint32_t i = 0; job->contract && i < job->contract->define_count; i++) {
        snprintf(values[i], sizeof values[i], "%d", job->contract->defines[i].value);
        defines[options.define_count++] = (AsDefine){job->contract->defines[i].name, values[i]};
    }
    const char *text = kernel_source(job->source);
    if (!text)
        return status_error("no kernel source %s", job->source);
    Arena arena = {0};
    AsObject object;
    Status status = assemble(&arena, job->source, text, strlen(text), &options, &object);
    if (status_ok(status))
        status = name_entry(job, &object);
    if (status_ok(status))
        status = obj_write(&object, &job->elf);
    arena_free(&arena);
    return status;
}

/* A cached file is the hash of the object's bytes, then those: a damaged one is assembled again. */
enum { HASH_BYTES = 32 };

static bool read_cached(Job *job)
{
    Bytes file;
    if (!job->cache_path || !file_exists(job->cache_path) ||
        status_discard(file_read(job->cache_path, FILE_LIMIT_TEXT, &file)))
        return false;
    bool good = file.count > HASH_BYTES;
    if (good) {
        ContentKey key = content_key(file.data + HASH_BYTES, file.count - HASH_BYTES);
        good = memcmp(key.hex, file.data, HASH_BYTES) == 0;
    }
    if (good) {
        job->elf = (Bytes){xmalloc(file.count), file.count - HASH_BYTES};
        memcpy(job->elf.data, file.data + HASH_BYTES, job->elf.count);
    }
    bytes_free(&file);
    return good;
}

/* A cache that cannot be written is no error. */
static void write_cached(const Job *job)
{
    size_t count = HASH_BYTES + job->elf.count;
    uint8_t *file = xmalloc(count);
    ContentKey key = content_key(job->elf.data, job->elf.count);
    memcpy(file, key.hex, HASH_BYTES);
    memcpy(file + HASH_BYTES, job->elf.data, job->elf.count);
    (void)status_discard(file_write(job->cache_path, file, count));
    free(file);
}

static void build_job(void *context, size_t index, unsigned worker)
{
    (void)worker;
    Job *job = &((Job *)context)[index];
    job->hit = read_cached(job);
    if (job->hit)
        return;
    job->status = assemble_job(job);
    if (status_ok(job->status) && job->cache_path)
        write_cached(job);
}

static void print_defines(Text *text, const KernelContract *contract)
{
    for (uint32_t i = 0; contract && i < contract->define_count; i++)
        text_printf(text, " %s=%d", contract->defines[i].name, contract->defines[i].value);
}

static const char *cache_path(Arena *arena, const char *cache, const char *includes, const Job *job)
{
    Text text = {0};
    text_printf(&text, "%s\n%s\n%s\n", cache_version, includes, job->source);
    print_defines(&text, job->contract);
    const char *source = kernel_source(job->source);
    text_printf(&text, "\n%s", source ? source : "");
    ContentKey key = content_key(text.items, text.count);
    text_free(&text);
    return arena_printf(arena, "%s/kernels/%s", cache, key.hex);
}

static void add_job(Arena *arena, JobArray *jobs, Map *seen, const char *source,
                    const KernelContract *contract)
{
    Text text = {0};
    bool added;
    text_append(&text, source);
    print_defines(&text, contract);
    uint64_t *place = map_at_text(seen, text_string(&text), &added);
    if (added) {
        *place = jobs->count;
        array_push(jobs, ((Job){.source = source,
                                .name = arena_strdup(arena, text_string(&text)),
                                .contract = contract}));
    }
    text_free(&text);
}

static Status collect_jobs(Arena *arena, const KernelSpec *specs, size_t count, JobArray *jobs)
{
    Map seen = {0};
    Status status = STATUS_OK;
    add_job(arena, jobs, &seen, "runtime.S", NULL);
    for (size_t i = 0; i < count && status_ok(status); i++) {
        KernelContract *contract = arena_new(arena, KernelContract);
        status = kernel_contract(&specs[i], contract);
        if (status_ok(status))
            add_job(arena, jobs, &seen, kernel_family(specs[i].family)->source, contract);
    }
    map_free(&seen);
    return status;
}

static void choose_cache_paths(Arena *arena, JobArray *jobs, const char *cache)
{
    if (!cache || status_discard(folder_create(arena_printf(arena, "%s/kernels", cache))))
        return;
    Text includes = {0};
    for (const KernelSource *source = ipu_kernel_sources; source->name; source++)
        if (strstr(source->name, ".inc"))
            text_append(&includes, source->text);
    for (size_t i = 0; i < jobs->count; i++)
        jobs->items[i].cache_path =
            cache_path(arena, cache, text_string(&includes), &jobs->items[i]);
    text_free(&includes);
}

static Status read_objects(Arena *arena, JobArray *jobs, KernelObjects *out)
{
    out->count = (uint32_t)jobs->count;
    out->objects = arena_array(arena, AsObject *, jobs->count);
    out->names = arena_array(arena, const char *, jobs->count);
    for (size_t i = 0; i < jobs->count; i++) {
        Job *job = &jobs->items[i];
        out->objects[i] = arena_new(arena, AsObject);
        out->names[i] = job->name;
        out->cache_hits += job->hit;
        TRY(obj_read(arena, job->name, job->elf.data, job->elf.count, out->objects[i]));
    }
    return STATUS_OK;
}

Status kernels_build(Arena *arena, const KernelSpec *specs, size_t count, const char *cache,
                     Pool *pool, KernelObjects *out)
{
    *out = (KernelObjects){0};
    JobArray jobs = {0};
    Status status = collect_jobs(arena, specs, count, &jobs);
    if (status_ok(status)) {
        choose_cache_paths(arena, &jobs, cache);
        if (pool)
            parallel_for(pool, jobs.count, build_job, jobs.items);
        else
            for (size_t i = 0; i < jobs.count; i++)
                build_job(jobs.items, i, 0);
        for (size_t i = 0; i < jobs.count; i++) { /* the first error in order, the others go */
            if (status_ok(status))
                status =
                    status_context(jobs.items[i].status, "kernel object %s", jobs.items[i].name);
            else
                status_free(jobs.items[i].status);
        }
    }
    if (status_ok(status))
        status = read_objects(arena, &jobs, out);
    for (size_t i = 0; i < jobs.count; i++)
        bytes_free(&jobs.items[i].elf);
    array_free(&jobs);
    return status;
}

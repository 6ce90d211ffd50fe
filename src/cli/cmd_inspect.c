/* cmd_inspect.c - ipu-stack inspect: what a file holds. The file is told by its first bytes: an ELF
 * object goes to the same printer as `obj`, anything else is read as a package, then as a profile.
 */
#include "cli/cli.h"
#include "package/package.h"

#include <string.h>

typedef struct Totals { /* over all tiles */
    uint64_t segments, memory_bytes, data_bytes, code_bytes;
    uint64_t largest_tile_bytes;
    uint32_t largest_tile;
} Totals;

static Totals count_tiles(const Package *package)
{
    Totals totals = {0};
    for (uint32_t t = 0; t < package->tile_count; t++) {
        const PackageTile *tile = &package->tiles[t];
        uint64_t bytes = 0;
        for (uint32_t s = 0; s < tile->segment_count; s++) {
            bytes += tile->segments[s].memory_bytes;
            totals.data_bytes += tile->segments[s].data_bytes;
            if (tile->segments[s].flags & 4)
                totals.code_bytes += tile->segments[s].memory_bytes;
        }
        totals.segments += tile->segment_count;
        totals.memory_bytes += bytes;
        if (bytes > totals.largest_tile_bytes) {
            totals.largest_tile_bytes = bytes;
            totals.largest_tile = tile->physical;
        }
    }
    return totals;
}

static void print_bindings(const char *kind, const PackageBinding *bindings, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        Text text = {0};
        shape_print(&text, &bindings[i].shape);
        text_append(&text, " ");
        format_print(&text, &bindings[i].format);
        printf("%s %s %s %s slices=%u bytes=%llu\n", kind, bindings[i].name, bindings[i].dtype,
               text_string(&text), bindings[i].slice_count,
               (unsigned long long)binding_raw_bytes(&bindings[i]));
        text_free(&text);
    }
}

static void print_package(const Package *package)
{
    Totals totals = count_tiles(package);
    printf("package compiler=%s tilesUsed=%u tiles=%u segments=%llu memoryBytes=%llu "
           "dataBytes=%llu codeBytes=%llu largestTile=%u largestTileBytes=%llu\n",
           package->compiler_version, package->tiles_used, package->tile_count,
           (unsigned long long)totals.segments, (unsigned long long)totals.memory_bytes,
           (unsigned long long)totals.data_bytes, (unsigned long long)totals.code_bytes,
           totals.largest_tile, (unsigned long long)totals.largest_tile_bytes);
    print_bindings("input", package->inputs, package->input_count);
    print_bindings("output", package->outputs, package->output_count);
    print_bindings("weight", package->weights, package->weight_count);
    for (uint32_t i = 0; i < package->call_count; i++)
        printf("call %s command=%u phases=%u invocations=%u\n", package->calls[i].name,
               package->calls[i].command, package->calls[i].phases, package->calls[i].invocations);
    for (uint32_t i = 0; i < package->phase_count; i++) {
        const PackagePhase *phase = &package->phases[i];
        printf("phase %u operation=%s transfers=%u bound=%u horizon=%u inRepeat=%d words=%llu\n", i,
               phase->operation, phase->transfers, phase->bound, phase->horizon, phase->in_repeat,
               (unsigned long long)phase->words_received);
    }
    for (uint32_t i = 0; i < package->text_count; i++)
        printf("text %s bytes=%zu\n", package->texts[i].name, strlen(package->texts[i].text));
    printf("symbols=%u regions=%u allocations=%u checksum=%016llx\n", package->symbol_count,
           package->region_count, package->allocation_count, (unsigned long long)package->checksum);
}

static json_t *bindings_json(const PackageBinding *bindings, uint32_t count)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; i++) {
        json_t *shape = json_array();
        for (uint32_t a = 0; a < bindings[i].shape.rank; a++)
            json_array_append_new(shape, json_integer(bindings[i].shape.extent[a]));
        json_array_append_new(list, json_pack("{s:s,s:s,s:o,s:o,s:I,s:I}", "name", bindings[i].name,
                                              "dtype", bindings[i].dtype, "shape", shape, "format",
                                              format_to_json(&bindings[i].format), "slices",
                                              (json_int_t)bindings[i].slice_count, "bytes",
                                              (json_int_t)binding_raw_bytes(&bindings[i])));
    }
    return list;
}

static void print_package_json(const Package *package)
{
    Totals totals = count_tiles(package);
    json_t *phases = json_array();
    for (uint32_t i = 0; i < package->phase_count; i++) {
        const PackagePhase *phase = &package->phases[i];
        json_array_append_new(phases,
                              json_pack("{s:s,s:I,s:I,s:I,s:b,s:I}", "operation", phase->operation,
                                        "transfers", (json_int_t)phase->transfers, "bound",
                                        (json_int_t)phase->bound, "horizon",
                                        (json_int_t)phase->horizon, "inRepeat", phase->in_repeat,
                                        "words", (json_int_t)phase->words_received));
    }
    json_t *value = json_pack(
        "{s:s,s:I,s:I,s:I,s:I,s:I,s:o,s:o,s:o,s:o}", "compiler", package->compiler_version,
        "tilesUsed", (json_int_t)package->tiles_used, "tiles", (json_int_t)package->tile_count,
        "memoryBytes", (json_int_t)totals.memory_bytes, "dataBytes", (json_int_t)totals.data_bytes,
        "codeBytes", (json_int_t)totals.code_bytes, "inputs",
        bindings_json(package->inputs, package->input_count), "outputs",
        bindings_json(package->outputs, package->output_count), "weights",
        bindings_json(package->weights, package->weight_count), "phases", phases);
    json_dumpf(value, stdout, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
    putchar('\n');
    json_decref(value);
}

static void print_profile(const Profile *profile, bool json)
{
    uint64_t samples = 0, activities = 0;
    for (uint32_t t = 0; t < profile->tile_count; t++) {
        samples += profile->tiles[t].sample_count;
        activities += profile->tiles[t].activity_count;
    }
    if (json) {
        json_t *value = json_pack("{s:s,s:I,s:s,s:I,s:I,s:I,s:I}", "kind", "profile", "clockHz",
                                  (json_int_t)profile->clock_hz, "source", profile->source, "tiles",
                                  (json_int_t)profile->tile_count, "steps",
                                  (json_int_t)profile->step_count, "samples", (json_int_t)samples,
                                  "predictions", (json_int_t)profile->prediction_count);
        json_dumpf(value, stdout, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
        putchar('\n');
        json_decref(value);
        return;
    }
    printf("profile source=%s clockHz=%llu tiles=%u steps=%u samples=%llu exchangeRows=%llu "
           "predictions=%u\n",
           *profile->source ? profile->source : "unknown", (unsigned long long)profile->clock_hz,
           profile->tile_count, profile->step_count, (unsigned long long)samples,
           (unsigned long long)activities, profile->prediction_count);
}

/* What is no package may be a profile; the package's complaint is what is told if it is neither. */
static Status inspect_profile(const char *path, bool json, Status complaint)
{
    Arena arena = {0};
    Profile profile;
    Status status = profile_read(&arena, path, &profile);
    if (status_ok(status)) {
        print_profile(&profile, json);
        status_free(complaint);
        complaint = STATUS_OK;
    }
    status_free(status);
    arena_free(&arena);
    return complaint;
}

static Status inspect(const char *path, bool json, bool *is_object)
{
    Bytes bytes;
    TRY(file_read(path, FILE_LIMIT_DATA, &bytes));
    *is_object = bytes.count >= 4 && memcmp(bytes.data, "\177ELF", 4) == 0;
    bytes_free(&bytes);
    if (*is_object)
        return STATUS_OK;
    Arena arena = {0};
    Package package;
    Status status = package_read(&arena, path, &package);
    if (status_ok(status)) {
        if (json)
            print_package_json(&package);
        else
            print_package(&package);
    }
    arena_free(&arena);
    return status_ok(status) ? status : inspect_profile(path, json, status);
}

int cmd_inspect(int argc, char **argv)
{
    bool json = false;
    const Option options[] = {{"--json", OPTION_FLAG, &json, "", "for programs", 0, 0}, {0}};
    const Command command = {"ipu-stack inspect FILE [--json]",
                             "Shows what a package, a profile or an object holds.", options, 1, 1};
    TextList arguments = {0};
    int done = command_parse(&command, argc, argv, &arguments);
    if (done >= 0) {
        array_free(&arguments);
        return done;
    }
    bool is_object = false;
    Status status = inspect(arguments.items[0], json, &is_object);
    array_free(&arguments);
    if (!status_ok(status))
        return command_fail("inspect", status);
    return is_object ? cmd_obj(argc, argv) : 0;
}

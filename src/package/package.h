/* package.h - .ipuexe files: one package holds the machine code of all 1,472 tiles and everything
 * that run, classify, inspect and explain need. Cap'n Proto, schemas/application.capnp; the C++
 * that the library needs stays in one file behind this header. Validated on write and on read
 * (memory-boot-package.md 4.3); a hostile file gives an error with the field's name. */
#ifndef IPU_PACKAGE_PACKAGE_H
#define IPU_PACKAGE_PACKAGE_H

#include "tensor/tensor.h"

#define PACKAGE_TARGET "ipu21"
enum { PACKAGE_SCHEMA_VERSION = 5, PACKAGE_MEMORY_BASE = 0x4c000, PACKAGE_MEMORY_BYTES = 638976 };

#define PACKAGE_ALL_TILES 0xffffffffu /* tile of a region that is the same everywhere */

typedef struct PackageSegment {
    uint32_t address, memory_bytes, flags;
    const uint8_t *data;
    uint32_t data_bytes;
} PackageSegment;

typedef struct PackageTile {
    uint32_t physical, entry, command_address, diagnostic_address;
    PackageSegment *segments;
    uint32_t segment_count;
    uint32_t steps_start, steps_end; /* ours: where the counted steps begin and end */
} PackageTile;

typedef struct PackageSlice {
    uint32_t tile; /* physical */
    uint32_t address;
    uint64_t file_offset, bytes;
} PackageSlice;

typedef struct PackageBinding {
    const char *name, *dtype;
    Shape shape;
    PackageSlice *slices; /* raw shard bytes, in shard-and-replica order of the format */
    uint32_t slice_count;
    Format format; /* ours: the layout (JSON text in the file); tile_count 0: the file has none */
} PackageBinding;

typedef struct PackageText { /* ours: named texts: "model", "recipe", "graph", "mid", ... */
    const char *name, *text;
} PackageText;

typedef struct PackagePhase { /* ours: an exchange phase */
    const char *operation;
    uint32_t transfers, bound, horizon;
    bool in_repeat;
    uint64_t words_received; /* per execution, over all tiles: checked by a verifying run */
} PackagePhase;

typedef struct PackageSymbol {
    const char *name;
    uint32_t address;
} PackageSymbol;
typedef struct PackageRegion {
    uint32_t physical, address, bytes; /* physical 0xffffffff: every tile */
    const char *name;
} PackageRegion;

typedef struct PackageCall {
    const char *name;
    uint32_t command, phases, invocations;
} PackageCall;

typedef struct PackageAllocation { /* ours: memory map of a tile class, for explain --stage memory
                                    */
    uint32_t tile, address, bytes, first, last; /* logical tile; lifetime in steps */
    const char *name;
} PackageAllocation;

/* ---- profiles (memory-boot-package.md 5): what a tile does step by step, and when it did ----
 *
 * A ProfileStep is one description, shared by all tiles and samples that it fits. A package holds
 * the plan (which steps a tile runs, where their code begins); a profile file holds samples. */
enum { PROFILE_SCHEMA_VERSION = 5 };
#define PROFILE_EXCHANGE_PHASE 0x80000000u /* + number of the exchange phase */

typedef enum ProfileKind {
    PROFILE_EXCHANGE,
    PROFILE_COMPUTE,
    PROFILE_SYNC,
    PROFILE_IDLE,
    PROFILE_KINDS
} ProfileKind;
extern const char *const profile_kind_names[PROFILE_KINDS];

/* Kernel names of the steps that are the ends of a loop; the first has metadata "iterations". */
#define PROFILE_REPEAT "repeat"
#define PROFILE_REPEAT_END "repeat-end"

typedef struct ProfileStep {
    uint32_t phase; /* PROFILE_EXCHANGE_PHASE + phase, else the step's number in the program */
    uint8_t kind;
    const char *operation, *kernel; /* kernel "": none */
    PackageText *metadata;
    uint32_t metadata_count;
    uint32_t event_cycles; /* of an exchange: the phase's horizon */
} ProfileStep;
const char *profile_metadata(const ProfileStep *step, const char *name); /* NULL: missing */

typedef enum ProfileSpanKind { SPAN_SEND, SPAN_RECEIVE, SPAN_PARTNER, SPAN_KINDS } ProfileSpanKind;
typedef struct ProfileSpan { /* events of an exchange phase, half open */
    uint32_t start, end;
    uint8_t kind;
    bool paired;
    uint16_t fanout;
} ProfileSpan;
enum { SPAN_TIME_LIMIT = 1 << 24, SPAN_FANOUT_LIMIT = (1 << 11) - 1 };

typedef struct ProfileActivity { /* spans of one tile in one exchange step */
    uint32_t step, event_cycles; /* the tile's own horizon */
    ProfileSpan *spans;
    uint32_t span_count;
} ProfileActivity;

typedef struct ProfilePrediction { /* of the planner, over all executions */
    const char *operation;
    double cycles, exchange_cycles;
} ProfilePrediction;

typedef struct ProfileTilePlan {
    uint32_t physical;
    uint32_t *steps, *addresses; /* in program order, addresses ascending */
    uint32_t step_count;
    ProfileActivity *activities;
    uint32_t activity_count;
} ProfileTilePlan;

typedef enum ProfileMode { PROFILE_OFF, PROFILE_OVERALL, PROFILE_FULL } ProfileMode;
#define PROFILE_BINDING "profile.cycles"

typedef struct ProfileSample {
    uint32_t step, epoch, start, end; /* cycles: low 32 bits of the counter */
} ProfileSample;

typedef struct ProfileTile {
    uint32_t physical;
    ProfileSample *samples; /* in time */
    uint32_t sample_count;
    ProfileActivity *activities; /* ascending step */
    uint32_t activity_count;
} ProfileTile;

typedef struct Profile { /* memory in the arena; the plan's parts may be the package's */
    uint64_t clock_hz;
    const char *source, *program;
    uint32_t tiles_used;
    ProfileStep *steps;
    uint32_t step_count;
    ProfileTile *tiles;
    uint32_t tile_count;
    ProfilePrediction *predictions;
    uint32_t prediction_count;
} Profile;

/* What the tile did in an exchange step; NULL: not known. */
const ProfileActivity *profile_activity(const ProfileTile *tile, uint32_t step);
/* Every rule of a profile: numbers in range, samples in time and within 2^31 cycles of the first.
 */
Status profile_check(const Profile *profile);
Status profile_encode(const Profile *profile, bool inline_steps, Bytes *out); /* checks first */
Status profile_write(const Profile *profile, const char *path);
Status profile_decode(Arena *arena, const char *name, const uint8_t *data, size_t count,
                      Profile *out);
Status profile_read(Arena *arena, const char *path, Profile *out);

typedef struct Package { /* memory in the arena */
    const char *compiler_version;
    uint32_t tiles_used; /* logical */
    PackageTile *tiles;
    uint32_t tile_count;
    PackageBinding *inputs, *outputs, *weights;
    uint32_t input_count, output_count, weight_count;
    PackageCall *calls;
    uint32_t call_count;
    PackageSymbol *symbols;
    uint32_t symbol_count;
    PackageRegion *regions;
    uint32_t region_count;
    PackagePhase *phases;
    uint32_t phase_count;
    PackageText *texts;
    uint32_t text_count;
    PackageAllocation *allocations;
    uint32_t allocation_count;
    uint32_t startup_mark;
    uint64_t checksum; /* of the file that was read; 0: it has none */
    /* profile plan; no tiles: none */
    uint32_t profile_mode;
    ProfileStep *profile_steps;
    uint32_t profile_step_count;
    ProfileTilePlan *profile_tiles;
    uint32_t profile_tile_count;
    ProfilePrediction *predictions;
    uint32_t prediction_count;
} Package;

Status package_check(const Package *package);
Status package_encode(const Package *package, Bytes *out); /* checks first; with a checksum */
Status package_write(const Package *package, const char *path);
/* Segment data stays where it is: `data` must live as long as the package. */
Status package_decode(Arena *arena, const char *name, const uint8_t *data, size_t count,
                      Package *out);
Status package_read(Arena *arena, const char *path, Package *out);  /* data lives in the arena */
const char *package_text(const Package *package, const char *name); /* NULL: none */

/* Host tensor (row-major, the binding's precision) <-> the binding's raw slices; an error for
 * bindings without a layout (packages of other writers). */
bool binding_has_layout(const PackageBinding *binding);
Status binding_pack(const PackageBinding *binding, const void *logical, uint8_t *raw);
Status binding_unpack(const PackageBinding *binding, const uint8_t *raw, void *logical);
uint64_t binding_raw_bytes(const PackageBinding *binding);

#endif

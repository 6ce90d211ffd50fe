/* wire.cpp - Cap'n Proto messages of packages (schemas/application.capnp).
 *
 * The library has no C interface; this file and wire_profile.cpp are the only C++ of the project.
 * They map fields one to one; the rules are in check.c, but for those of fields that a Package does
 * not hold (host pages, configuration writes, other writers' profile plans), which are checked here
 * as they pass. Exceptions of the library end here as errors. */
#include "package/wire_parts.h"

#include "schemas/application.capnp.h"

#include <capnp/any.h>
#include <capnp/schema.h>

namespace
{

/* ---- writing ---- */

void put_segments(TileImage::Builder out, const PackageTile &tile)
{
    auto list = out.initSegments(tile.segment_count);
    for (uint32_t i = 0; i < tile.segment_count; i++) {
        const PackageSegment &segment = tile.segments[i];
        list[i].setAddress(segment.address);
        list[i].setMemorySize(segment.memory_bytes);
        list[i].setFlags(segment.flags);
        list[i].setData(kj::arrayPtr(segment.data, segment.data_bytes));
    }
}

void put_tiles(Application::Builder out, const Package &package)
{
    auto list = out.initTiles(package.tile_count);
    for (uint32_t i = 0; i < package.tile_count; i++) {
        const PackageTile &tile = package.tiles[i];
        list[i].setPhysicalTile(tile.physical);
        list[i].setEntryPoint(tile.entry);
        list[i].setCommandAddress(tile.command_address);
        list[i].setDiagnosticAddress(tile.diagnostic_address);
        list[i].setStepsStart(tile.steps_start);
        list[i].setStepsEnd(tile.steps_end);
        put_segments(list[i], tile);
    }
}

void put_binding(Binding::Builder out, const PackageBinding &binding)
{
    out.setName(binding.name);
    out.setDtype(binding.dtype);
    auto shape = out.initShape(binding.shape.rank);
    for (uint32_t a = 0; a < binding.shape.rank; a++)
        shape.set(a, binding.shape.extent[a]);
    auto slices = out.initSlices(binding.slice_count);
    for (uint32_t i = 0; i < binding.slice_count; i++) {
        slices[i].setTile(binding.slices[i].tile);
        slices[i].setTileAddress(binding.slices[i].address);
        slices[i].setFileOffset(binding.slices[i].file_offset);
        slices[i].setSize(binding.slices[i].bytes);
    }
    if (!binding_has_layout(&binding))
        return;
    json_t *format = format_to_json(&binding.format);
    char *text = json_dumps(format, JSON_COMPACT | JSON_PRESERVE_ORDER);
    out.setLayout(text);
    free(text);
    json_decref(format);
}

void put_bindings(capnp::List<Binding>::Builder list, const PackageBinding *bindings)
{
    for (uint32_t i = 0; i < list.size(); i++)
        put_binding(list[i], bindings[i]);
}

void put_host_exchange(HostExchange::Builder out, const Package &package)
{
    out.setStartupMark(package.startup_mark);
    out.setCommandPage(0);
    out.setCommandOffset(0);
    auto pages = out.initPages(1); /* the command page; data pages come with the packet protocol */
    pages[0].setIndex(0);
    pages[0].setSize(4096);
    out.initAttachOrder(1).set(0, 0);
    auto calls = out.initCalls(package.call_count);
    for (uint32_t i = 0; i < package.call_count; i++) {
        calls[i].setName(package.calls[i].name);
        calls[i].setCommand(package.calls[i].command);
        calls[i].setPhases(package.calls[i].phases);
        calls[i].setInvocations(package.calls[i].invocations);
    }
}

void put_debug_map(Application::Builder out, const Package &package)
{
    auto symbols = out.initDebugSymbols(package.symbol_count);
    for (uint32_t i = 0; i < package.symbol_count; i++) {
        symbols[i].setName(package.symbols[i].name);
        symbols[i].setAddress(package.symbols[i].address);
    }
    auto regions = out.initDebugRegions(package.region_count);
    for (uint32_t i = 0; i < package.region_count; i++) {
        regions[i].setPhysicalTile(package.regions[i].physical);
        regions[i].setAddress(package.regions[i].address);
        regions[i].setSize(package.regions[i].bytes);
        regions[i].setName(package.regions[i].name);
    }
}

void put_extensions(Application::Builder out, const Package &package)
{
    out.setTilesUsed(package.tiles_used);
    auto texts = out.initTexts(package.text_count);
    for (uint32_t i = 0; i < package.text_count; i++) {
        texts[i].setName(package.texts[i].name);
        texts[i].setText(package.texts[i].text);
    }
    auto phases = out.initPhases(package.phase_count);
    for (uint32_t i = 0; i < package.phase_count; i++) {
        const PackagePhase &phase = package.phases[i];
        phases[i].setOperation(phase.operation);
        phases[i].setTransfers(phase.transfers);
        phases[i].setBound(phase.bound);
        phases[i].setHorizon(phase.horizon);
        phases[i].setInRepeat(phase.in_repeat);
        phases[i].setWordsReceived(phase.words_received);
    }
    auto allocations = out.initAllocations(package.allocation_count);
    for (uint32_t i = 0; i < package.allocation_count; i++) {
        const PackageAllocation &allocation = package.allocations[i];
        allocations[i].setTile(allocation.tile);
        allocations[i].setAddress(allocation.address);
        allocations[i].setBytes(allocation.bytes);
        allocations[i].setFirstStep(allocation.first);
        allocations[i].setLastStep(allocation.last);
        allocations[i].setName(allocation.name);
    }
}

void put_profile_plan(Application::Builder out, const Package &package)
{
    out.setProfileMode(package.profile_mode);
    put_steps(out.initProfileSteps(package.profile_step_count), package.profile_steps);
    put_predictions(out.initPredictions(package.prediction_count), package.predictions);
    auto tiles = out.initProfileTiles(package.profile_tile_count);
    for (uint32_t t = 0; t < package.profile_tile_count; t++) {
        const ProfileTilePlan &plan = package.profile_tiles[t];
        tiles[t].setPhysicalTile(plan.physical);
        auto steps = tiles[t].initStepIndices(plan.step_count);
        auto addresses = tiles[t].initAddresses(plan.step_count);
        for (uint32_t i = 0; i < plan.step_count; i++) {
            steps.set(i, plan.steps[i]);
            addresses.set(i, plan.addresses[i]);
        }
        put_activities(tiles[t].initActivities(plan.activity_count), plan.activities);
    }
}

void put_application(Application::Builder out, const Package &package)
{
    out.setSchemaVersion(PACKAGE_SCHEMA_VERSION);
    out.setCompilerVersion(package.compiler_version);
    out.setTarget(PACKAGE_TARGET);
    out.setTileMemoryBase(PACKAGE_MEMORY_BASE);
    out.setTileMemorySize(PACKAGE_MEMORY_BYTES);
    put_tiles(out, package);
    put_bindings(out.initInputs(package.input_count), package.inputs);
    put_bindings(out.initOutputs(package.output_count), package.outputs);
    put_bindings(out.initWeights(package.weight_count), package.weights);
    put_host_exchange(out.initHostExchange(), package);
    auto entries = out.initEntryPoints(1);
    entries[0].setName("run");
    put_debug_map(out, package);
    put_extensions(out, package);
    put_profile_plan(out, package);
}

size_t binding_words(const PackageBinding *bindings, uint32_t count)
{
    size_t words = 0;
    for (uint32_t i = 0; i < count; i++)
        words += 256 + text_words(bindings[i].name) + 4 * (size_t)bindings[i].slice_count;
    return words;
}

/* An upper bound: structs and pointers of an item never take more than 16 words. */
size_t package_words(const Package &package)
{
    size_t words = 1024 + text_words(package.compiler_version);
    for (uint32_t t = 0; t < package.tile_count; t++) {
        words += 16;
        for (uint32_t s = 0; s < package.tiles[t].segment_count; s++)
            words += 16 + package.tiles[t].segments[s].data_bytes / 8;
    }
    words += binding_words(package.inputs, package.input_count);
    words += binding_words(package.outputs, package.output_count);
    words += binding_words(package.weights, package.weight_count);
    for (uint32_t i = 0; i < package.call_count; i++)
        words += 16 + text_words(package.calls[i].name);
    for (uint32_t i = 0; i < package.symbol_count; i++)
        words += 16 + text_words(package.symbols[i].name);
    for (uint32_t i = 0; i < package.region_count; i++)
        words += 16 + text_words(package.regions[i].name);
    for (uint32_t i = 0; i < package.phase_count; i++)
        words += 16 + text_words(package.phases[i].operation);
    for (uint32_t i = 0; i < package.text_count; i++)
        words += 16 + text_words(package.texts[i].name) + text_words(package.texts[i].text);
    for (uint32_t i = 0; i < package.allocation_count; i++)
        words += 16 + text_words(package.allocations[i].name);
    words += steps_words(package.profile_steps, package.profile_step_count);
    words += predictions_words(package.predictions, package.prediction_count);
    for (uint32_t t = 0; t < package.profile_tile_count; t++) {
        const ProfileTilePlan &plan = package.profile_tiles[t];
        words += 16 + plan.step_count;
        words += activities_words(plan.activities, plan.activity_count);
    }
    return words;
}

/* ---- reading ---- */

void take_tiles(Arena *arena, Application::Reader in, Package *out)
{
    auto list = in.getTiles();
    out->tile_count = list.size();
    out->tiles = arena_list<PackageTile>(arena, list.size());
    for (uint32_t t = 0; t < list.size(); t++) {
        PackageTile &tile = out->tiles[t];
        tile.physical = list[t].getPhysicalTile();
        tile.entry = list[t].getEntryPoint();
        tile.command_address = list[t].getCommandAddress();
        tile.diagnostic_address = list[t].getDiagnosticAddress();
        tile.steps_start = list[t].getStepsStart();
        tile.steps_end = list[t].getStepsEnd();
        auto segments = list[t].getSegments();
        tile.segment_count = segments.size();
        tile.segments = arena_list<PackageSegment>(arena, segments.size());
        for (uint32_t s = 0; s < segments.size(); s++) {
            auto data = segments[s].getData();
            PackageSegment &segment = tile.segments[s];
            segment.address = segments[s].getAddress();
            segment.memory_bytes = segments[s].getMemorySize();
            segment.flags = segments[s].getFlags();
            segment.data = data.begin();
            segment.data_bytes = static_cast<uint32_t>(data.size());
        }
    }
}

Status take_format(Arena *arena, Binding::Reader in, PackageBinding *out)
{
    auto text = in.getLayout();
    if (text.size() == 0) /* another writer's */
        return STATUS_OK;
    JsonPlace place;
    const char *name = arena_printf(arena, "layout of %s", out->name);
    TRY(json_open(arena, name, text.cStr(), text.size(), &place));
    Status status = format_from_json(&place, &out->format);
    json_close(&place);
    return status;
}

Status take_bindings(Arena *arena, capnp::List<Binding>::Reader in, PackageBinding **out,
                     uint32_t *count)
{
    *count = in.size();
    *out = arena_list<PackageBinding>(arena, in.size());
    for (uint32_t i = 0; i < in.size(); i++) {
        PackageBinding &binding = (*out)[i];
        binding.name = take_text(arena, in[i].getName());
        binding.dtype = take_text(arena, in[i].getDtype());
        auto shape = in[i].getShape();
        if (shape.size() > MAX_RANK)
            return status_error("binding %s: rank %u is above %d", binding.name, shape.size(),
                                MAX_RANK);
        binding.shape.rank = shape.size();
        for (uint32_t a = 0; a < shape.size(); a++)
            binding.shape.extent[a] = shape[a];
        auto slices = in[i].getSlices();
        binding.slice_count = slices.size();
        binding.slices = arena_list<PackageSlice>(arena, slices.size());
        for (uint32_t s = 0; s < slices.size(); s++) {
            binding.slices[s].tile = slices[s].getTile();
            binding.slices[s].address = slices[s].getTileAddress();
            binding.slices[s].file_offset = slices[s].getFileOffset();
            binding.slices[s].bytes = slices[s].getSize();
        }
        TRY(take_format(arena, in[i], &binding));
    }
    return STATUS_OK;
}

/* page index -> size + 1 */
Status take_pages(HostExchange::Reader in, Map *sizes)
{
    bool added;
    for (auto page : in.getPages()) {
        uint64_t *size = map_at(sizes, page.getIndex(), &added);
        if (!added)
            return status_error("hostExchange: page %u stands twice", page.getIndex());
        *size = page.getSize() + 1;
    }
    for (uint32_t index : in.getAttachOrder())
        if (!map_find(sizes, index))
            return status_error("hostExchange: attachOrder names page %u, which is missing", index);
    return STATUS_OK;
}

Status check_host_slices(const char *call, capnp::List<HostSlice>::Reader slices,
                         capnp::List<uint32_t>::Reader ends, const Map *sizes)
{
    for (auto slice : slices) {
        const uint64_t *page = map_find(sizes, slice.getPage());
        if (!page)
            return status_error("call %s: page %u is missing", call, slice.getPage());
        if (slice.getSize() > *page - 1 || slice.getPageOffset() > *page - 1 - slice.getSize())
            return status_error("call %s: a slice reaches beyond page %u", call, slice.getPage());
    }
    uint32_t last = 0;
    for (uint32_t end : ends) {
        if (end <= last)
            return status_error("call %s: batch ends do not increase", call);
        last = end;
    }
    if (last != slices.size())
        return status_error("call %s: batches end at %u of %u slices", call, last, slices.size());
    return STATUS_OK;
}

Status take_calls(Arena *arena, HostExchange::Reader in, const Map *sizes, Package *out)
{
    out->startup_mark = in.getStartupMark();
    auto calls = in.getCalls();
    out->call_count = calls.size();
    out->calls = arena_list<PackageCall>(arena, calls.size());
    const uint64_t *command = map_find(sizes, in.getCommandPage());
    if (calls.size() && (!command || *command - 1 < 4 || in.getCommandOffset() > *command - 1 - 4))
        return status_error("hostExchange: the command word is in no page");
    for (uint32_t i = 0; i < calls.size(); i++) {
        PackageCall &call = out->calls[i];
        call.name = take_text(arena, calls[i].getName());
        call.command = calls[i].getCommand();
        call.phases = calls[i].getPhases();
        call.invocations = calls[i].getInvocations();
        TRY(check_host_slices(call.name, calls[i].getInputs(), calls[i].getInputBatchEnds(),
                              sizes));
        TRY(check_host_slices(call.name, calls[i].getOutputs(), calls[i].getOutputBatchEnds(),
                              sizes));
    }
    return STATUS_OK;
}

Status take_host_exchange(Arena *arena, HostExchange::Reader in, Package *out)
{
    OwnedMap sizes;
    TRY(take_pages(in, &sizes));
    return take_calls(arena, in, &sizes, out);
}

Status check_config_writes(Application::Reader in)
{
    OwnedMap offsets;
    for (auto write : in.getDeviceConfigWrites()) {
        bool added;
        map_at(&offsets, write.getOffset(), &added);
        if (!added || write.getOffset() % 4)
            return status_error("deviceConfigWrites: offset %#x stands twice or is no multiple "
                                "of 4",
                                write.getOffset());
    }
    return STATUS_OK;
}

Status check_profile_plans(Application::Reader in, const Package *package)
{
    OwnedMap plans; /* physical tile -> plans so far */
    for (uint32_t t = 0; t < package->tile_count; t++)
        *map_at(&plans, package->tiles[t].physical, nullptr) = 0;
    for (auto plan : in.getProfileTiles()) {
        uint32_t tile = plan.getPhysicalTile(), index = 0;
        if (!map_find(&plans, tile) || (*map_at(&plans, tile, nullptr))++)
            return status_error("profileTiles: physical tile %u is missing or stands twice", tile);
        for (auto step : plan.getSteps())
            if (step.getLocalIndex() != index++)
                return status_error("profileTiles: physical tile %u: step %u has index %u", tile,
                                    index - 1, step.getLocalIndex());
    }
    return STATUS_OK;
}

Status take_profile_tile(Arena *arena, TileProfilePlan::Reader in, ProfileTilePlan *out)
{
    out->physical = in.getPhysicalTile();
    auto steps = in.getStepIndices(), addresses = in.getAddresses();
    if (steps.size() != addresses.size())
        return status_error("profileTiles: physical tile %u: %u steps, %u addresses", out->physical,
                            steps.size(), addresses.size());
    out->step_count = steps.size();
    out->steps = arena_list<uint32_t>(arena, steps.size());
    out->addresses = arena_list<uint32_t>(arena, steps.size());
    for (uint32_t i = 0; i < steps.size(); i++) {
        out->steps[i] = steps[i];
        out->addresses[i] = addresses[i];
    }
    return take_activities(arena, in.getActivities(), &out->activities, &out->activity_count);
}

/* Plans of other writers, with steps in place, are checked above and not kept. */
Status take_profile_plan(Arena *arena, Application::Reader in, Package *out)
{
    out->profile_mode = in.getProfileMode();
    TRY(take_steps(arena, in.getProfileSteps(), &out->profile_steps, &out->profile_step_count));
    take_predictions(arena, in.getPredictions(), &out->predictions, &out->prediction_count);
    if (!out->profile_step_count)
        return STATUS_OK;
    auto tiles = in.getProfileTiles();
    out->profile_tile_count = tiles.size();
    out->profile_tiles = arena_list<ProfileTilePlan>(arena, tiles.size());
    for (uint32_t t = 0; t < tiles.size(); t++)
        TRY(take_profile_tile(arena, tiles[t], &out->profile_tiles[t]));
    return STATUS_OK;
}

void take_debug_map(Arena *arena, Application::Reader in, Package *out)
{
    auto symbols = in.getDebugSymbols();
    out->symbol_count = symbols.size();
    out->symbols = arena_list<PackageSymbol>(arena, symbols.size());
    for (uint32_t i = 0; i < symbols.size(); i++) {
        out->symbols[i].name = take_text(arena, symbols[i].getName());
        out->symbols[i].address = symbols[i].getAddress();
    }
    auto regions = in.getDebugRegions();
    out->region_count = regions.size();
    out->regions = arena_list<PackageRegion>(arena, regions.size());
    for (uint32_t i = 0; i < regions.size(); i++) {
        out->regions[i].physical = regions[i].getPhysicalTile();
        out->regions[i].address = regions[i].getAddress();
        out->regions[i].bytes = regions[i].getSize();
        out->regions[i].name = take_text(arena, regions[i].getName());
    }
}

void take_extensions(Arena *arena, Application::Reader in, Package *out)
{
    out->tiles_used = in.getTilesUsed();
    auto texts = in.getTexts();
    out->text_count = texts.size();
    out->texts = arena_list<PackageText>(arena, texts.size());
    for (uint32_t i = 0; i < texts.size(); i++) {
        out->texts[i].name = take_text(arena, texts[i].getName());
        out->texts[i].text = take_text(arena, texts[i].getText());
    }
    auto phases = in.getPhases();
    out->phase_count = phases.size();
    out->phases = arena_list<PackagePhase>(arena, phases.size());
    for (uint32_t i = 0; i < phases.size(); i++) {
        PackagePhase &phase = out->phases[i];
        phase.operation = take_text(arena, phases[i].getOperation());
        phase.transfers = phases[i].getTransfers();
        phase.bound = phases[i].getBound();
        phase.horizon = phases[i].getHorizon();
        phase.in_repeat = phases[i].getInRepeat();
        phase.words_received = phases[i].getWordsReceived();
    }
    auto allocations = in.getAllocations();
    out->allocation_count = allocations.size();
    out->allocations = arena_list<PackageAllocation>(arena, allocations.size());
    for (uint32_t i = 0; i < allocations.size(); i++) {
        PackageAllocation &allocation = out->allocations[i];
        allocation.tile = allocations[i].getTile();
        allocation.address = allocations[i].getAddress();
        allocation.bytes = allocations[i].getBytes();
        allocation.first = allocations[i].getFirstStep();
        allocation.last = allocations[i].getLastStep();
        allocation.name = take_text(arena, allocations[i].getName());
    }
}

/* Where the field lies in the file: behind the root's other data, at the schema's offset. */
size_t checksum_place(Application::Reader in, const uint8_t *data)
{
    capnp::AnyStruct::Reader any(in);
    auto field = capnp::Schema::from<Application>().getFieldByName("checksum").getProto();
    return (size_t)(any.getDataSection().begin() - data) +
           field.getSlot().getOffset() * sizeof(uint64_t);
}

/* Files without a checksum (other writers') have nothing to be held to. */
Status check_checksum(Application::Reader in, const uint8_t *data, size_t count)
{
    uint64_t stored = in.getChecksum();
    if (!stored)
        return STATUS_OK;
    uint64_t found = framing_checksum(data, count, checksum_place(in, data));
    if (found != stored)
        return status_error("damaged: its checksum is %016llx, that of its content %016llx",
                            (unsigned long long)stored, (unsigned long long)found);
    return STATUS_OK;
}

Status take_header(Application::Reader in)
{
    if (in.getSchemaVersion() != PACKAGE_SCHEMA_VERSION)
        return status_error("schemaVersion: %u, this program reads %d", in.getSchemaVersion(),
                            PACKAGE_SCHEMA_VERSION);
    if (strcmp(in.getTarget().cStr(), PACKAGE_TARGET) != 0)
        return status_error("target: \"%s\" is not \"%s\"", in.getTarget().cStr(), PACKAGE_TARGET);
    if (in.getTileMemoryBase() != PACKAGE_MEMORY_BASE ||
        in.getTileMemorySize() != PACKAGE_MEMORY_BYTES)
        return status_error("tileMemoryBase, tileMemorySize: %#x, %u are not the chip's",
                            in.getTileMemoryBase(), in.getTileMemorySize());
    return STATUS_OK;
}

Status take_application(Arena *arena, Application::Reader in, Package *out)
{
    *out = Package{};
    TRY(take_header(in));
    out->checksum = in.getChecksum();
    out->compiler_version = take_text(arena, in.getCompilerVersion());
    take_tiles(arena, in, out);
    TRY(take_bindings(arena, in.getInputs(), &out->inputs, &out->input_count));
    TRY(take_bindings(arena, in.getOutputs(), &out->outputs, &out->output_count));
    TRY(take_bindings(arena, in.getWeights(), &out->weights, &out->weight_count));
    TRY(take_host_exchange(arena, in.getHostExchange(), out));
    TRY(check_config_writes(in));
    TRY(check_profile_plans(in, out));
    TRY(take_profile_plan(arena, in, out));
    take_debug_map(arena, in, out);
    take_extensions(arena, in, out);
    return STATUS_OK;
}

} // namespace

extern "C" Status wire_encode(const Package *package, Bytes *out)
{
    try {
        FileMessage message(package_words(*package));
        put_application(message.initRoot<Application>(), *package);
        *out = message.take();
        return STATUS_OK;
    } catch (const kj::Exception &) {
        return status_error("package: too large for one message");
    }
}

extern "C" Status wire_seal(Bytes *package)
{
    try {
        capnp::FlatArrayMessageReader message(words_of(package->data, package->count),
                                              reader_options(package->count));
        size_t place = checksum_place(message.getRoot<Application>(), package->data);
        uint64_t checksum = framing_checksum(package->data, package->count, place);
        memcpy(package->data + place, &checksum, sizeof checksum);
        return STATUS_OK;
    } catch (const kj::Exception &) {
        return status_error("package: too large for its own reader");
    }
}

extern "C" Status wire_decode(Arena *arena, const char *name, const uint8_t *data, size_t count,
                              Package *out)
{
    TRY(framing_check("package", name, data, count));
    try {
        capnp::FlatArrayMessageReader message(words_of(data, count), reader_options(count));
        auto root = message.getRoot<Application>();
        TRY(status_context(check_checksum(root, data, count), "%s", name));
        return status_context(take_application(arena, root, out), "%s", name);
    } catch (const kj::Exception &) {
        return status_error("%s: damaged, or not a package: " WIRE_DAMAGED, name);
    }
}

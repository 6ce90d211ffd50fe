/* wire_parts.h - what the two message files share: the buffer a message is built in, and the parts
 * that packages and profiles have in common. C++, private to this folder. */
#ifndef IPU_PACKAGE_WIRE_PARTS_H
#define IPU_PACKAGE_WIRE_PARTS_H

extern "C" {
#include "package/wire.h"
}

#include "schemas/profile_common.capnp.h"

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <kj/exception.h>
#include <stdlib.h>
#include <string.h>

/* The message is built where the file will be: one segment in one large buffer behind the framing
 * word (segments - 1, words). The estimate is generous, untouched pages cost nothing. */
class FileMessage : public capnp::MessageBuilder
{
  public:
    explicit FileMessage(size_t words)
        : words(words), buffer(static_cast<capnp::word *>(xcalloc(words + 2, sizeof(capnp::word))))
    {
    }
    ~FileMessage() noexcept(false) override
    {
        free(buffer);
    }
    kj::ArrayPtr<capnp::word> allocateSegment(uint32_t minimum) override
    {
        KJ_REQUIRE(!used && minimum <= words, "the package's size was estimated too small");
        used = true;
        return kj::arrayPtr(buffer + 1, words);
    }
    Bytes take() /* the finished file; the buffer changes hands */
    {
        auto segments = getSegmentsForOutput();
        uint32_t framing[2] = {0, static_cast<uint32_t>(segments[0].size())};
        memcpy(buffer, framing, sizeof framing);
        Bytes out = {reinterpret_cast<uint8_t *>(buffer), (segments[0].size() + 1) * 8};
        buffer = nullptr;
        return out;
    }

  private:
    size_t words;
    capnp::word *buffer;
    bool used = false;
};

/* What the library's own complaints come to for somebody who has a file and no schema. */
#define WIRE_DAMAGED "its parts point outside the file, overlap, or are of the wrong kind"

inline kj::ArrayPtr<const capnp::word> words_of(const uint8_t *data, size_t count)
{
    return kj::arrayPtr(reinterpret_cast<const capnp::word *>(data), count / sizeof(capnp::word));
}

/* Every object is read once; more means that pointers overlap. */
inline capnp::ReaderOptions reader_options(size_t count)
{
    capnp::ReaderOptions options;
    options.traversalLimitInWords = count / sizeof(capnp::word) * 2 + 4096;
    return options;
}

inline size_t text_words(const char *text)
{
    return strlen(text) / 8 + 2;
}

template <typename T> T *arena_list(Arena *arena, uint32_t count)
{
    return static_cast<T *>(arena_alloc(arena, array_bytes(count, sizeof(T)), alignof(T)));
}

/* A map that goes away when the library throws. */
struct OwnedMap : Map {
    OwnedMap() : Map()
    {
    }
    ~OwnedMap()
    {
        map_free(this);
    }
};

inline const char *take_text(Arena *arena, capnp::Text::Reader text)
{
    return arena_strdup(arena, text.cStr());
}

/* wire_profile.cpp */
void put_steps(capnp::List<Step>::Builder out, const ProfileStep *steps);
void put_activities(capnp::List<StepActivities>::Builder out, const ProfileActivity *activities);
void put_predictions(capnp::List<Prediction>::Builder out, const ProfilePrediction *predictions);
size_t steps_words(const ProfileStep *steps, uint32_t count);
size_t activities_words(const ProfileActivity *activities, uint32_t count);
size_t predictions_words(const ProfilePrediction *predictions, uint32_t count);
Status take_step(Arena *arena, Step::Reader in, ProfileStep *out);
Status take_steps(Arena *arena, capnp::List<Step>::Reader in, ProfileStep **out, uint32_t *count);
Status take_activities(Arena *arena, capnp::List<StepActivities>::Reader in, ProfileActivity **out,
                       uint32_t *count);
void take_predictions(Arena *arena, capnp::List<Prediction>::Reader in, ProfilePrediction **out,
                      uint32_t *count);

#endif

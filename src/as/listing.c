/* listing.c - the listing: what every statement became, next to its source line. */
#include "as/assembler.h"

#include <string.h>

/* Called behind every statement: remembers the bytes that it added to its section. */
void listing_note(Assembler *as)
{
    Section *section = as->section;
    bool same = as->row_section == section;
    uint64_t start = same ? as->row_offset : section->row_end;
    as->row_section = section;
    as->row_offset = section->row_end = section->bytes;
    const Position *at = &as->statement;
    const Frame *frame = at->frame;
    if (!frame->builtin) {
        ListingRow row = {.frame = frame,
                          .section = section,
                          .offset = (uint32_t)start,
                          .bytes = (uint32_t)(section->bytes - start),
                          .line = at->line,
                          .text = as->statement_line};
        const char *end = memchr(row.text, '\n', (size_t)(frame->end - row.text));
        row.length = (uint32_t)((end ? end : frame->end) - row.text);
        array_push(&as->listing, row);
    }
}

static int depth_of(const Frame *frame)
{
    int depth = 0;
    while ((frame = frame->parent))
        depth++;
    return depth;
}

static void write_row(Text *out, const ListingRow *row, bool repeated)
{
    enum { SHOWN = 16 }; /* bytes; longer data is cut */
    const Section *section = row->section;
    Text bytes = {0};
    for (uint32_t i = 0; i < row->bytes && i < SHOWN && section && section->data.items;) {
        const uint8_t *at = &section->data.items[row->offset + i];
        bool word = section->flags & AS_EXECUTE && row->bytes - i >= 4;
        if (word)
            text_printf(&bytes, "%08x ", load_u32(at));
        else
            text_printf(&bytes, "%02x ", *at);
        i += word ? 4 : 1;
    }
    text_printf(out, "%5u ", row->line);
    if (row->bytes)
        text_printf(out, "%06x %-18s%s", row->offset, text_string(&bytes),
                    row->bytes > SHOWN ? "+ " : "");
    else
        text_printf(out, "%6s %-18s", "", "");
    text_printf(out, "%*s%.*s\n", 2 * depth_of(row->frame), "", repeated ? 0 : (int)row->length,
                row->text);
    text_free(&bytes);
}

void listing_write(Assembler *as)
{
    const Section *section = NULL;
    Text *out = as->options->listing;
    for (size_t i = 0; i < as->listing.count; i++) {
        const ListingRow *row = &as->listing.items[i];
        if (row->section != section)
            text_printf(out, "section %s\n", row->section->name);
        section = row->section;
        bool repeated = i && row->text == row[-1].text && row->line == row[-1].line;
        if (!repeated || row->bytes)
            write_row(out, row, repeated);
    }
}

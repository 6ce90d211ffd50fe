/* state.c - what a search found, kept in a file for the next build (--plan-state).
 *
 * The file holds the finalists, best first, and a key: a digest of the compiler's version, the
 * graph and the options that the search looks at. With an equal key a build takes the finalists as
 * they are and goes on with their exact prices; a file with another key belongs to somebody else
 * and is neither used nor overwritten. Recipes are checked as those of --recipe are. */
#include "compile/lowered.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ipu/log.h"

static uint64_t state_key(const Compilation *c, const PlanOptions *plan)
{
    Text text = {0};
    text_printf(&text, "%s tiles=%u precision=%u,%d once=%d pairs=%d rows=%d beam=%u %s\n",
                IPU_VERSION, plan->tiles, plan->precision.kind, plan->precision.scale,
                plan->weights_once, plan->pairs, plan->io_row_major, plan->beam,
                plan->constraints ? plan->constraints : "");
    graph_print(&text, c->graph, NULL);
    uint64_t key = hash_bytes(text.items, text.count, 0);
    text_free(&text);
    return key;
}

static Status read_finalists(Compilation *c, const JsonPlace *place, const PlanOptions *plan)
{
    static const char *const keys[] = {"key", "finalists", NULL};
    enum { MOST = 64 };
    const char *key;
    char wanted[17];
    JsonPlace list, item;
    size_t count;
    snprintf(wanted, sizeof wanted, "%016" PRIx64, state_key(c, plan));
    TRY(json_only(place, keys));
    TRY(json_text(place, "key", &key));
    if (strcmp(key, wanted) != 0)
        return status_error("%s: the state of another search (other graph, options or compiler): "
                            "name another file or remove this one",
                            place->path);
    TRY(json_member(place, "finalists", &list));
    TRY(json_count(&list, &count));
    if (count < 1 || count > MOST)
        return status_error("%s: %zu finalists", list.path, count);
    Recipe *recipes = arena_array(&c->arena, Recipe, count);
    c->finalists = arena_array(&c->arena, Finalist, count);
    for (size_t i = 0; i < count; i++) {
        TRY(json_item(&list, i, &item));
        TRY(recipe_from_json(&c->arena, &item, c->graph, &recipes[i]));
        TRY(status_context(recipe_check(c->graph, &recipes[i]), "%s", item.path));
        c->finalists[i] = (Finalist){
            .rank = (uint32_t)i, .recipe = &recipes[i], .planned = recipes[i].predicted_cycles};
    }
    c->finalist_count = (uint32_t)count;
    return STATUS_OK;
}

Status state_load(Compilation *c, const char *path, const PlanOptions *plan, bool *found)
{
    Bytes bytes;
    JsonPlace place;
    *found = path && access(path, F_OK) == 0;
    if (!*found)
        return STATUS_OK;
    TRY(file_read(path, FILE_LIMIT_TEXT, &bytes));
    Status status = json_open(&c->arena, path, (const char *)bytes.data, bytes.count, &place);
    bytes_free(&bytes);
    TRY(status);
    status = read_finalists(c, &place, plan);
    json_close(&place);
    if (status_ok(status))
        log_event(LOG_INFO, "read search state", "finalists=%u", c->finalist_count);
    return status;
}

Status state_save(const Compilation *c, const char *path, const PlanOptions *plan)
{
    if (!path)
        return STATUS_OK;
    char key[17];
    snprintf(key, sizeof key, "%016" PRIx64, state_key(c, plan));
    json_t *list = json_array(), *state = json_pack("{s:s}", "key", key);
    for (uint32_t i = 0; i < c->finalist_count; i++)
        json_array_append_new(list, recipe_to_json(c->graph, c->finalists[i].recipe));
    json_object_set_new(state, "finalists", list);
    char *text = json_dumps(state, JSON_COMPACT | JSON_PRESERVE_ORDER);
    Status status = file_write(path, text, strlen(text));
    free(text);
    json_decref(state);
    return status;
}

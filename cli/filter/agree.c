/* agree.c - keys are made of lines as they were when the filter was made. */
#include "agree.h"

#include <perhaps_file.h>

#include "../input/note.h"
#include "remote.h"

static const char *note_of(const struct target *target)
{
    return target->web      ? web_note(target->web)
           : target->remote ? client.note(remote_handle(target->remote))
           : target->filter ? perhaps_note(target->filter)
                            : "";
}

/* Returns how lines become keys for this filter; NULL if that is not known. */
static const struct key_form *form_of(const struct target *target, struct key_form *form)
{
    const char *note = note_of(target);
    switch (note_read(note, form)) {
    case NOTED:
        return form;
    case NOT_UNDERSTOOD:
        fail("%s: was made of '%s', which this version does not know: use a later one",
             target->path, note);
    case NOT_NOTED:
        break;
    }
    return NULL;
}

/* Letters are treated as the command line says, but not as the filter needs it. */
static void contradict(const struct target *target)
{
    const struct settings *settings = target->settings;
    if (!(settings->verb->bit & (QUERY | COUNT)))
        fail("--ignore-case: %s was made without it, and its keys would be missed: leave it "
             "out, or make the filter anew with it",
             target->path);
    if (!settings->quiet && !settings->json)
        complain("--ignore-case: %s was made without it: keys that it has with capital letters "
                 "are not found",
                 target->path);
}

void agree_on_keys(const struct target *target, struct input *input)
{
    const struct settings *settings = target->settings;
    struct key_form noted, form = settings->form;
    if (!form_of(target, &noted))
        return;
    if (form.ignore_case && !noted.ignore_case)
        contradict(target);
    form.ignore_case |= noted.ignore_case;
    form.crlf |= noted.crlf;
    const bool fields = noted.fields.count && !form.fields.count && !settings->keys.count;
    if (fields) {
        form.fields = noted.fields;
        form.delimiter = noted.delimiter;
    }
    input_take_form(input, &form, fields ? target->path : NULL);
}

void agree_on_both(const struct target *target, const struct target *other)
{
    struct key_form a, b;
    if (!form_of(target, &a) || !form_of(other, &b))
        return;
    if (a.ignore_case != b.ignore_case)
        fail("%s and %s: one was made with --ignore-case, and one without: the same key is not "
             "the same in both",
             target->path, other->path);
}

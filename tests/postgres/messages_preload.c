/* messages_preload.c - a gettext that translates nothing, for a server that runs with the
 * runtime of AddressSanitizer.  With that glibc's own lets go of a lock that it does not hold,
 * and waits for it forever. */
char *bindtextdomain(const char *domain, const char *folder);
char *textdomain(const char *domain);
char *gettext(const char *text);
char *dgettext(const char *domain, const char *text);
char *dcgettext(const char *domain, const char *text, int category);
char *ngettext(const char *one, const char *many, unsigned long n);
char *dngettext(const char *domain, const char *one, const char *many, unsigned long n);

/* They return what they were given, as the real ones do where there is no translation. */
static char *as_it_is(const char *text)
{
    union {
        const char *given;
        char *returned;
    } pointer = { .given = text };
    return pointer.returned;
}

char *bindtextdomain(const char *domain, const char *folder)
{
    (void)domain;
    return as_it_is(folder);
}

char *textdomain(const char *domain)
{
    return as_it_is(domain);
}

char *gettext(const char *text)
{
    return as_it_is(text);
}

char *dgettext(const char *domain, const char *text)
{
    (void)domain;
    return as_it_is(text);
}

char *dcgettext(const char *domain, const char *text, int category)
{
    (void)domain;
    (void)category;
    return as_it_is(text);
}

char *ngettext(const char *one, const char *many, unsigned long n)
{
    return as_it_is(n == 1 ? one : many);
}

char *dngettext(const char *domain, const char *one, const char *many, unsigned long n)
{
    (void)domain;
    return ngettext(one, many, n);
}

/* redis.c - a Redis server for one run (scratch.h). */
#include "scratch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE_MS = 10000 };
static pid_t server;

static const char *const programs[] = { "redis-server", "valkey-server" };

static bool is_installed(const char *program)
{
    const char *path = getenv("PATH");
    while (path && *path) {
        int nbytes = (int)strcspn(path, ":");
        char *file = text_of("%.*s/%s", nbytes, path, program);
        bool there = access(file, X_OK) == 0;
        free(file);
        if (there)
            return true;
        path += nbytes;
        path += *path == ':';
    }
    return false;
}

/* The system chooses it.  Another program may take it before the server does,
 * which then ends. */
static unsigned free_port(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t nbytes = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, nbytes) ||
        getsockname(fd, (struct sockaddr *)&address, &nbytes))
        fail("no free port on 127.0.0.1: %s", strerror(errno));
    close(fd);
    return ntohs(address.sin_port);
}

/* The log is asked and not the port, where another program might answer. */
static bool is_ready(const char *log)
{
    char line[256];
    bool ready = false;
    FILE *file = fopen(log, "r");
    while (file && !ready && fgets(line, sizeof line, file))
        ready = strstr(line, "Ready to accept connections") != NULL;
    if (file)
        fclose(file);
    return ready;
}

static void stop_server(void *context)
{
    (void)context;
    if (server > 0 && kill(server, SIGTERM) == 0)
        waitpid(server, NULL, 0);
}

static const char *find_program(void)
{
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++)
        if (is_installed(programs[i]))
            return programs[i];
    return NULL;
}

static void become_server(const char *program, unsigned port, const char *log)
{
    char number[16];
    char *folder = scratch_path("");
    int nowhere = open("/dev/null", O_RDWR);
    snprintf(number, sizeof number, "%u", port);
    for (int fd = 0; fd <= 2; fd++)
        dup2(nowhere, fd);
    execlp(program, program, "--port", number, "--bind", "127.0.0.1", "--save", "",
           "--appendonly", "no", "--dir", folder, "--logfile", log, (char *)NULL);
    _exit(127);
}

unsigned scratch_redis(void)
{
    const struct timespec moment = { .tv_nsec = 20000000 };
    const char *program = find_program();
    if (!program)
        return 0;
    char *log = scratch_path("redis.log");
    unsigned port = free_port();
    server = fork_child();
    if (server == 0)
        become_server(program, port, log);
    at_end(stop_server, NULL);
    for (int waited_ms = 0; !is_ready(log); waited_ms += 20) {
        bool has_ended = waitpid(server, NULL, WNOHANG) != 0;
        if (has_ended)
            server = 0; /* its number may be another's soon */
        if (has_ended || waited_ms > PATIENCE_MS)
            fail("%s did not start on port %u; --cache redis://host:port takes one that runs, "
                 "--cache none does without",
                 program, port);
        nanosleep(&moment, NULL);
    }
    free(log);
    return port;
}

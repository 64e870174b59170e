/* commands.h - the commands. */
#ifndef COMMANDS_H
#define COMMANDS_H

#include "server.h"

command_function bf_reserve, bf_add, bf_madd, bf_insert, bf_exists, bf_mexists, bf_info,
    bf_card, bf_debug, bf_shrink, bf_merge, bf_scandump, bf_loadchunk, bf_load;
command_function cf_reserve, cf_add, cf_addnx, cf_insert, cf_insertnx, cf_exists, cf_mexists,
    cf_count, cf_del, cf_compact, cf_info, cf_debug, cf_scandump, cf_loadchunk;
/* internal.c */
command_function perhaps_create_command, perhaps_advance_command;
/* partitions.c */
command_function perhaps_test_command, perhaps_set_command;

#endif

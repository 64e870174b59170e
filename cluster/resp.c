#include "resp.h"

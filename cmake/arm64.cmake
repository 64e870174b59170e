# 64-bit ARM from another machine, with Debian's cross compiler and its arm64 packages; the tests
# run under qemu-user. ./dev test arm64 uses this.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)
# in place of the folders where pkg-config would look; it would leave out what it takes for the
# compiler's own folders of headers and libraries
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)

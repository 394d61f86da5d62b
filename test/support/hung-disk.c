/* Preloaded into a program: its waits for the disk do not end while the file that PAYBOX_TEST_HUNG_DISK names is there. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static int waited(int fd, long call) {
  const char *file = getenv("PAYBOX_TEST_HUNG_DISK");
  while (file != NULL && access(file, F_OK) == 0) usleep(10000);
  return (int)syscall(call, fd);
}

int fdatasync(int fd) { return waited(fd, SYS_fdatasync); }
int fsync(int fd) { return waited(fd, SYS_fsync); }

/*
 * The pins of a Raspberry Pi 4, for a program that maps their registers from /dev/mem: preloaded, it records what is
 * written to them. Every access to a register faults; the handler lets it through and notes it.
 *
 *   LED_PINS_RECORD=FILE   a ring of events, which another process reads while this one writes
 *   LED_PINS_GUARDED=1     the kernel guards the registers, as Debian's does without iomem=relaxed
 *   LED_PINS_STRICT=1      /dev/mem itself has to open too, which proves the rights of the process
 *
 * The file: head (events ever written, as 64 bits), then EVENTS words of 64 bits: register << 32 | value.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define EVENTS (1 << 19)
#define BLOCK_BYTES 4096
#define BLOCKS 4
#define PERIPHERALS_OF_PI_4 0xFE000000u

/* Offsets of the blocks, and of the registers that are more than memory. */
enum { TIMER = 0x003000, CLOCKS = 0x101000, GPIO = 0x200000, PWM = 0x20C000 };
enum { TIMER_LOW = TIMER + 4, GPIO_SET = GPIO + 0x1C, GPIO_CLEAR = GPIO + 0x28 };
enum { PWM_CONTROL = PWM, PWM_STATUS = PWM + 4, PWM_FIFO = PWM + 0x18 };
#define PWM_EMPTY 2u

struct record {
  volatile uint64_t written;
  volatile uint64_t events[EVENTS];
};
struct block {
  uint32_t offset;
  /* What the program sees, which faults, and the same memory for this file. */
  uint8_t *seen;
  uint8_t *own;
};

static struct record *record;
static struct block blocks[BLOCKS];
static int block_count;
static int memory_fd = -1;
static struct sigaction before;
static void fail(const char *why) {
  fprintf(stderr, "led-pins: %s\n", why);
  abort();
}

static uint32_t *own_word(struct block *block, uint32_t at) { return (uint32_t *)(block->own + (at & ~3u)); }

/* Makes a register hold what the hardware would answer now. */
static void before_read(struct block *block, uint32_t at) {
  uint32_t reg = block->offset + at;
  if (reg == TIMER_LOW) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    *own_word(block, at) = (uint32_t)(now.tv_sec * 1000000 + now.tv_nsec / 1000);
  } else if (reg == PWM_STATUS) {
    *own_word(block, at) = PWM_EMPTY;
  }
}

static void after_write(struct block *block, uint32_t at) {
  uint32_t reg = block->offset + at;
  if (record == NULL || (reg != GPIO_SET && reg != GPIO_CLEAR && reg != PWM_FIFO && reg != PWM_CONTROL)) return;
  uint64_t event = (uint64_t)reg << 32 | *own_word(block, at);
  record->events[record->written % EVENTS] = event;
  __atomic_store_n(&record->written, record->written + 1, __ATOMIC_RELEASE);
}

static void others(int signal, siginfo_t *info, void *context) {
  if (before.sa_flags & SA_SIGINFO) {
    before.sa_sigaction(signal, info, context);
  } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(signal);
  } else {
    sigaction(signal, &before, NULL);
  }
}

#if defined(__x86_64__)
#define TRAP_FLAG 0x100
#define FAULT_WAS_WRITE 2

/* A process has one thread for its panels, beside the one that maps them. */
static __thread struct block *stepping;
static __thread uint32_t stepping_at;
static __thread int stepping_writes;

/* Lets one instruction through, and traps after it. */
static void on_fault_at(struct block *block, uint32_t at, ucontext_t *context) {
  stepping = block;
  stepping_at = at;
  stepping_writes = (context->uc_mcontext.gregs[REG_ERR] & FAULT_WAS_WRITE) != 0;
  before_read(block, at);
  if (mprotect(block->seen, BLOCK_BYTES, PROT_READ | PROT_WRITE) != 0) fail("mprotect");
  context->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
}

static void on_trap(int signal, siginfo_t *info, void *context) {
  (void)signal, (void)info;
  struct block *block = stepping;
  if (block == NULL) fail("a trap that nobody set");
  ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
  if (mprotect(block->seen, BLOCK_BYTES, PROT_NONE) != 0) fail("mprotect");
  if (stepping_writes) after_write(block, stepping_at);
  stepping = NULL;
}
#elif defined(__aarch64__)
/* Carries out the load or store of 32 bits itself: LDR and STR, and their forms without scaled offsets. */
static void on_fault_at(struct block *block, uint32_t at, ucontext_t *context) {
  mcontext_t *machine = &context->uc_mcontext;
  uint32_t code = *(uint32_t *)machine->pc;
  int scaled = (code & 0xFF800000u) == 0xB9000000u;
  int unscaled_or_register = (code & 0xFF800000u) == 0xB8000000u && (code & 0x400u) == 0;
  if (!scaled && !unscaled_or_register && (code & 0xFFA00C00u) != 0xB8200800u) fail("an access that is not known");
  uint32_t from = code & 31;
  if (code & 0x00400000u) {
    before_read(block, at);
    if (from != 31) machine->regs[from] = *own_word(block, at);
  } else {
    *own_word(block, at) = from == 31 ? 0 : (uint32_t)machine->regs[from];
    after_write(block, at);
  }
  machine->pc += 4;
}

/* Nothing is stepped. */
static void on_trap(int signal, siginfo_t *info, void *context) { others(signal, info, context); }
#else
#error "x86-64 and arm64 only"
#endif

static void on_fault(int signal, siginfo_t *info, void *context) {
  uint8_t *address = info->si_addr;
  for (int index = 0; index < block_count; index += 1) {
    struct block *block = &blocks[index];
    if (address < block->seen || address >= block->seen + BLOCK_BYTES) continue;
    on_fault_at(block, (uint32_t)(address - block->seen), context);
    return;
  }
  others(signal, info, context);
}

static void begin(void) {
  const char *file = getenv("LED_PINS_RECORD");
  if (record != NULL || file == NULL) return;
  int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0 || ftruncate(fd, sizeof(struct record)) != 0) fail("LED_PINS_RECORD cannot be written");
  record = mmap(NULL, sizeof(struct record), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (record == MAP_FAILED) fail("LED_PINS_RECORD cannot be mapped");
  close(fd);
  record->written = 0;
  struct sigaction fault = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  struct sigaction trap = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  sigaction(SIGSEGV, &fault, &before);
  sigaction(SIGTRAP, &trap, NULL);
}

/* A file of this text, as that of a Pi 4; -1 where the name is none of them. */
static int file_of_pi(const char *name) {
  const char *text = NULL;
  if (strcmp(name, "/proc/cpuinfo") == 0) text = "Revision : c03114\n";
  if (strcmp(name, "/proc/device-tree/model") == 0) text = "Raspberry Pi 4 Model B Rev 1.4";
  if (strcmp(name, "/proc/modules") == 0) text = "vc4 1 0 - Live 0x0\n";
  if (text == NULL) return -1;
  int fd = memfd_create("pi", MFD_CLOEXEC);
  if (fd < 0 || write(fd, text, strlen(text)) < 0 || lseek(fd, 0, SEEK_SET) != 0) fail("memfd");
  return fd;
}

typedef int (*opener)(const char *, int, ...);

static int open_pins(opener next, const char *name, int flags, mode_t mode) {
  if (strcmp(name, "/dev/mem") == 0) {
    if (getenv("LED_PINS_STRICT") != NULL) {
      int real = next(name, flags, mode);
      if (real < 0) return real;
      close(real);
    }
    begin();
    memory_fd = memfd_create("pins", MFD_CLOEXEC);
    return memory_fd;
  }
  /* The kernel's settings, which the library changes where it may, are those of the machine that runs the test. */
  if (flags & (O_WRONLY | O_RDWR) && (strncmp(name, "/proc/sys/", 10) == 0 || strncmp(name, "/sys/", 5) == 0)) {
    return -1;
  }
  int own = file_of_pi(name);
  return own >= 0 ? own : next(name, flags, mode);
}

#define OPENER(function)                                                   \
  int function(const char *name, int flags, ...) {                         \
    va_list rest;                                                          \
    va_start(rest, flags);                                                 \
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
    va_end(rest);                                                          \
    return open_pins((opener)dlsym(RTLD_NEXT, #function), name, flags, mode); \
  }
OPENER(open)
OPENER(open64)

static void *map_block(uint32_t offset) {
  if (block_count == BLOCKS) fail("more blocks than a Pi has");
  int fd = memfd_create("block", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, BLOCK_BYTES) != 0) fail("memfd");
  void *(*real)(void *, size_t, int, int, int, off_t) = dlsym(RTLD_NEXT, "mmap");
  /* The clocks' registers are only memory here, and do not fault. */
  int access = offset == CLOCKS ? PROT_READ | PROT_WRITE : PROT_NONE;
  struct block block = {
      .offset = offset,
      .seen = real(NULL, BLOCK_BYTES, access, MAP_SHARED, fd, 0),
      .own = real(NULL, BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0),
  };
  if (block.seen == MAP_FAILED || block.own == MAP_FAILED) fail("mmap");
  close(fd);
  blocks[block_count] = block;
  block_count += 1;
  return block.seen;
}

static void *map_pins(const char *function, void *at, size_t length, int access, int flags, int fd, off_t offset) {
  if (fd >= 0 && fd == memory_fd) {
    if (getenv("LED_PINS_GUARDED") != NULL) {
      errno = EPERM;
      return MAP_FAILED;
    }
    if ((offset & 0xFF000000) != PERIPHERALS_OF_PI_4) fail("registers of another Pi");
    memory_fd = -1;
    return map_block((uint32_t)offset & 0xFFFFFF);
  }
  void *(*real)(void *, size_t, int, int, int, off_t) = dlsym(RTLD_NEXT, function);
  return real(at, length, access, flags, fd, offset);
}

void *mmap(void *at, size_t length, int access, int flags, int fd, off_t offset) {
  return map_pins("mmap", at, length, access, flags, fd, offset);
}
void *mmap64(void *at, size_t length, int access, int flags, int fd, off_t offset) {
  return map_pins("mmap64", at, length, access, flags, fd, offset);
}

/* A thread that faults at every step must not have a processor to itself. */
int pthread_setschedparam(pthread_t thread, int policy, const struct sched_param *parameters) {
  (void)thread, (void)policy, (void)parameters;
  return 0;
}

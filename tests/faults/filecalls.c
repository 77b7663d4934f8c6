/* A library to preload that records or disturbs the file-changing calls of all processes of a run.

   The control block lies in a file that FILECALLS names and every process maps. Calls on paths
   below its prefix are counted under a lock, so that their order is the order of their effects.
   With a log, each call that succeeded is appended to it with what it wrote. The call whose number
   is `at` is disturbed as `action` says. See filecalls.py for the other side. */

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
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum action { NOTHING, KILL_BEFORE, KILL_HALFWAY, KILL_AFTER, FAIL, FAIL_FROM_THEN_ON, SHORTEN };
enum operation {
  CREATE, WRITE, TRUNCATE, SYNC, SYNC_DATA, RENAME, LINK, UNLINK, MAKE_FOLDER, REMOVE_FOLDER, SYMLINK, READ
};

struct control {
  int64_t count, at, fired;
  int32_t action, error, armed, reads, skip_syncs, alone;
  char prefix[512], log[512], what[512];
  pthread_mutex_t lock;
};

struct entry { /* packed by its order: no padding */
  int64_t time_ns, inode, offset, modified_ns, data;
  int32_t operation, process, path, target;
};

static struct control *control;

static __attribute__((constructor)) void start(void) {
  const char *name = getenv("FILECALLS");
  int descriptor = name ? open(name, O_RDWR | O_CLOEXEC) : -1;
  if (descriptor < 0) return;
  void *mapped = mmap(0, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  close(descriptor);
  if (mapped != MAP_FAILED) control = mapped;
}

struct control *filecalls_control(void) { return control; }

void filecalls_reset(void) {
  pthread_mutexattr_t kind;
  pthread_mutexattr_init(&kind);
  pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
  memset(&control->lock, 0, sizeof control->lock);
  pthread_mutex_init(&control->lock, &kind);
  control->count = control->fired = 0;
  control->what[0] = 0;
}

/* ------------------------------------------------------------------------ original calls */

#define REAL(name) \
  static __typeof__(name) *real_##name; \
  if (!real_##name) real_##name = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

static int real_open_at(int folder, const char *path, int flags, mode_t mode) {
  REAL(openat);
  return real_openat(folder, path, flags, mode);
}

static ssize_t real_append(int descriptor, const void *data, size_t size) {
  REAL(write);
  size_t done = 0;
  while (done < size) {
    ssize_t written = real_write(descriptor, (const char *)data + done, size - done);
    if (written <= 0) return -1;
    done += written;
  }
  return done;
}

/* ------------------------------------------------------------------------ watched files */

static int below(const char *path) {
  size_t length = strlen(control->prefix);
  if (!length || strncmp(path, control->prefix, length)) return 0;
  return !path[length] || path[length] == '/';
}

static int watched(void) { return control && control->armed; }

static const char *name_of(int descriptor, char *name, size_t size) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  ssize_t length = readlink(link, name, size - 1);
  name[length < 0 ? 0 : length] = 0;
  return name;
}

/* The absolute path of `path` in the folder that `at` has open. */
static const char *absolute(int at, const char *path, char *name, size_t size) {
  if (path[0] == '/') return path;
  if (at == AT_FDCWD) {
    if (!getcwd(name, size)) name[0] = 0;
  } else {
    name_of(at, name, size);
  }
  size_t length = strlen(name);
  snprintf(name + length, size - length, "/%s", path);
  return name;
}

/* ------------------------------------------------------------------------ disturbing */

static void die(void) {
  if (control->alone) {
    pthread_mutex_unlock(&control->lock);
    kill(getpid(), SIGKILL);
  }
  kill(0, SIGKILL);
  for (;;) pause();
}

/* Counts a call and returns the action on it; the lock is held until `leave`. */
static enum action enter(const char *operation, const char *path) {
  if (pthread_mutex_lock(&control->lock) == EOWNERDEAD) pthread_mutex_consistent(&control->lock);
  int64_t number = ++control->count;
  int due = control->action == FAIL_FROM_THEN_ON ? number >= control->at : number == control->at;
  if (!due || !control->action) return NOTHING;
  if (!control->fired) {
    control->fired = number;
    snprintf(control->what, sizeof control->what, "%s %s", operation, path);
  }
  if (control->action == KILL_BEFORE) die();
  return control->action;
}

static void leave(enum action action) {
  if (action == KILL_AFTER || action == KILL_HALFWAY) die();
  pthread_mutex_unlock(&control->lock);
}

static int fails(enum action action) {
  if (action != FAIL && action != FAIL_FROM_THEN_ON) return 0;
  pthread_mutex_unlock(&control->lock);
  errno = control->error;
  return 1;
}

/* ------------------------------------------------------------------------ recording */

static void record(enum operation operation, const struct stat *of, const char *path,
                   const char *target, off_t offset, const void *data, size_t size) {
  if (!control->log[0]) return;
  int before = errno;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  struct entry entry = {
      .time_ns = now.tv_sec * 1000000000LL + now.tv_nsec,
      .inode = of ? (int64_t)of->st_ino : 0,
      .offset = offset,
      .modified_ns = of ? of->st_mtim.tv_sec * 1000000000LL + of->st_mtim.tv_nsec : 0,
      .data = (int64_t)size,
      .operation = operation,
      .process = getpid(),
      .path = path ? (int32_t)strlen(path) : 0,
      .target = target ? (int32_t)strlen(target) : 0,
  };
  int log = real_open_at(AT_FDCWD, control->log, O_WRONLY | O_APPEND | O_CLOEXEC, 0);
  if (log >= 0) {
    real_append(log, &entry, sizeof entry);
    if (path) real_append(log, path, entry.path);
    if (target) real_append(log, target, entry.target);
    if (size) real_append(log, data, size);
    close(log);
  }
  errno = before;
}

static void record_descriptor(enum operation operation, int descriptor, off_t offset,
                              const void *data, size_t size) {
  struct stat status;
  if (!fstat(descriptor, &status)) record(operation, &status, 0, 0, offset, data, size);
}

static void record_path(enum operation operation, const char *path, const char *target) {
  struct stat status;
  record(operation, lstat(target ? target : path, &status) ? 0 : &status, path, target, 0, 0, 0);
}

/* ------------------------------------------------------------------------ opening */

static int opened(int at, const char *given, int flags, mode_t mode) {
  char name[1024];
  const char *path = watched() ? absolute(at, given, name, sizeof name) : given;
  int changing = flags & (O_CREAT | O_TRUNC);
  if (!watched() || !below(path) || !(changing || control->reads))
    return real_open_at(at, given, flags, mode);
  enum action action = enter("open", path);
  if (fails(action)) return -1;
  struct stat status;
  int is_new = lstat(path, &status) != 0;
  int descriptor = real_open_at(at, given, flags, mode);
  if (descriptor >= 0 && changing) {
    fstat(descriptor, &status);
    if (is_new) record(CREATE, &status, path, 0, 0, 0, 0);
    else if (flags & O_TRUNC) record(TRUNCATE, &status, 0, 0, 0, 0, 0);
  }
  leave(action);
  return descriptor;
}

#define OPENED(name) \
  int name(const char *path, int flags, ...) { \
    va_list rest; va_start(rest, flags); mode_t mode = va_arg(rest, mode_t); va_end(rest); \
    return opened(AT_FDCWD, path, flags, mode); \
  }
#define OPENED_AT(name) \
  int name(int at, const char *path, int flags, ...) { \
    va_list rest; va_start(rest, flags); mode_t mode = va_arg(rest, mode_t); va_end(rest); \
    return opened(at, path, flags, mode); \
  }
OPENED(open)
OPENED(open64)
OPENED_AT(openat64)

int openat(int at, const char *path, int flags, ...) {
  va_list rest; va_start(rest, flags); mode_t mode = va_arg(rest, mode_t); va_end(rest);
  return opened(at, path, flags, mode);
}

/* ------------------------------------------------------------------------ data */

static int watches(int descriptor, char *name, size_t size) {
  return watched() && below(name_of(descriptor, name, size));
}

static size_t part(enum action action, size_t size) {
  return (action == KILL_HALFWAY || action == SHORTEN) && size > 1 ? size / 2 : size;
}

ssize_t write(int descriptor, const void *data, size_t size) {
  REAL(write);
  char name[1024];
  if (!watches(descriptor, name, sizeof name)) return real_write(descriptor, data, size);
  enum action action = enter("write", name);
  if (fails(action)) return -1;
  ssize_t written = real_write(descriptor, data, part(action, size));
  if (written > 0) {
    off_t end = lseek(descriptor, 0, SEEK_CUR);
    record_descriptor(WRITE, descriptor, end - written, data, written);
  }
  leave(action);
  return written;
}

#define WRITTEN_AT(name) \
  ssize_t name(int descriptor, const void *data, size_t size, off_t offset) { \
    REAL(name); \
    char path[1024]; \
    if (!watches(descriptor, path, sizeof path)) \
      return real_##name(descriptor, data, size, offset); \
    enum action action = enter("pwrite", path); \
    if (fails(action)) return -1; \
    ssize_t written = real_##name(descriptor, data, part(action, size), offset); \
    if (written > 0) record_descriptor(WRITE, descriptor, offset, data, written); \
    leave(action); \
    return written; \
  }
WRITTEN_AT(pwrite)
WRITTEN_AT(pwrite64)

#define READ_CALL(name, parameters, arguments) \
  ssize_t name parameters { \
    REAL(name); \
    char path[1024]; \
    if (!watched() || !control->reads || !watches(descriptor, path, sizeof path)) \
      return real_##name arguments; \
    enum action action = enter(#name, path); \
    if (fails(action)) return -1; \
    ssize_t found = real_##name arguments; \
    leave(action); \
    return found; \
  }
READ_CALL(read, (int descriptor, void *data, size_t size), (descriptor, data, size))
READ_CALL(pread, (int descriptor, void *data, size_t size, off_t offset),
          (descriptor, data, size, offset))
READ_CALL(pread64, (int descriptor, void *data, size_t size, off_t offset),
          (descriptor, data, size, offset))

/* Data copied by the kernel is read back, to be recorded as any other write. */
static void record_copied(int descriptor, off_t offset, ssize_t size) {
  if (size <= 0 || !control->log[0]) return;
  char name[64];
  snprintf(name, sizeof name, "/proc/self/fd/%d", descriptor);
  int again = real_open_at(AT_FDCWD, name, O_RDONLY | O_CLOEXEC, 0);
  char *data = malloc(size);
  REAL(pread);
  if (again >= 0 && data && real_pread(again, data, size, offset) == size)
    record_descriptor(WRITE, descriptor, offset, data, size);
  free(data);
  if (again >= 0) close(again);
}

#define SENT(name) \
  ssize_t name(int target, int source, off_t *from, size_t size) { \
    REAL(name); \
    char path[1024]; \
    if (!watches(target, path, sizeof path)) return real_##name(target, source, from, size); \
    enum action action = enter("sendfile", path); \
    if (fails(action)) return -1; \
    off_t offset = lseek(target, 0, SEEK_CUR); \
    ssize_t sent = real_##name(target, source, from, part(action, size)); \
    record_copied(target, offset, sent); \
    leave(action); \
    return sent; \
  }
SENT(sendfile)
SENT(sendfile64)

ssize_t copy_file_range(int source, off64_t *from, int target, off64_t *to, size_t size,
                        unsigned flags) {
  REAL(copy_file_range);
  char path[1024];
  if (!watches(target, path, sizeof path))
    return real_copy_file_range(source, from, target, to, size, flags);
  enum action action = enter("copy_file_range", path);
  if (fails(action)) return -1;
  off_t offset = to ? *to : lseek(target, 0, SEEK_CUR);
  ssize_t copied = real_copy_file_range(source, from, target, to, part(action, size), flags);
  record_copied(target, offset, copied);
  leave(action);
  return copied;
}

#define CUT(name) \
  int name(int descriptor, off_t size) { \
    REAL(name); \
    char path[1024]; \
    if (!watches(descriptor, path, sizeof path)) return real_##name(descriptor, size); \
    enum action action = enter("ftruncate", path); \
    if (fails(action)) return -1; \
    int failed = real_##name(descriptor, size); \
    if (!failed) record_descriptor(TRUNCATE, descriptor, size, 0, 0); \
    leave(action); \
    return failed; \
  }
CUT(ftruncate)
CUT(ftruncate64)

#define SYNCED(name, operation) \
  int name(int descriptor) { \
    REAL(name); \
    char path[1024]; \
    if (!watches(descriptor, path, sizeof path)) return real_##name(descriptor); \
    enum action action = enter(#name, path); \
    if (fails(action)) return -1; \
    int failed = control->skip_syncs ? 0 : real_##name(descriptor); \
    if (!failed) record_descriptor(operation, descriptor, 0, 0, 0); \
    leave(action); \
    return failed; \
  }
SYNCED(fsync, SYNC)
SYNCED(fdatasync, SYNC_DATA)

/* ------------------------------------------------------------------------ names */

static int renamed(int from, const char *old, int to, const char *new, int links, int flags) {
  REAL(renameat);
  REAL(linkat);
  char first[1024], second[1024];
  const char *path = watched() ? absolute(from, old, first, sizeof first) : old;
  const char *target = watched() ? absolute(to, new, second, sizeof second) : new;
  int counts = watched() && (below(path) || below(target));
  enum action action = counts ? enter(links ? "link" : "rename", target) : NOTHING;
  if (counts && fails(action)) return -1;
  int failed = links ? real_linkat(from, old, to, new, flags) : real_renameat(from, old, to, new);
  if (counts) {
    if (!failed) record_path(links ? LINK : RENAME, path, target);
    leave(action);
  }
  return failed;
}

int rename(const char *old, const char *new) {
  return renamed(AT_FDCWD, old, AT_FDCWD, new, 0, 0);
}
int renameat(int from, const char *old, int to, const char *new) {
  return renamed(from, old, to, new, 0, 0);
}
int link(const char *old, const char *new) { return renamed(AT_FDCWD, old, AT_FDCWD, new, 1, 0); }
int linkat(int from, const char *old, int to, const char *new, int flags) {
  return renamed(from, old, to, new, 1, flags);
}

int symlinkat(const char *content, int at, const char *given) {
  REAL(symlinkat);
  char name[1024];
  const char *path = watched() ? absolute(at, given, name, sizeof name) : given;
  if (!watched() || !below(path)) return real_symlinkat(content, at, given);
  enum action action = enter("symlink", path);
  if (fails(action)) return -1;
  int failed = real_symlinkat(content, at, given);
  struct stat status;
  if (!failed && !lstat(path, &status))
    record(SYMLINK, &status, path, 0, 0, content, strlen(content));
  leave(action);
  return failed;
}
int symlink(const char *content, const char *given) {
  return symlinkat(content, AT_FDCWD, given);
}

static int removed(int at, const char *given, int flags) {
  REAL(unlinkat);
  char name[1024];
  const char *path = watched() ? absolute(at, given, name, sizeof name) : given;
  struct stat status;
  if (!watched() || !below(path) || lstat(path, &status)) return real_unlinkat(at, given, flags);
  int folder = flags & AT_REMOVEDIR;
  enum action action = enter(folder ? "rmdir" : "unlink", path);
  if (fails(action)) return -1;
  int failed = real_unlinkat(at, given, flags);
  if (!failed) record(folder ? REMOVE_FOLDER : UNLINK, 0, path, 0, 0, 0, 0);
  leave(action);
  return failed;
}

int unlink(const char *path) { return removed(AT_FDCWD, path, 0); }
int unlinkat(int at, const char *path, int flags) { return removed(at, path, flags); }
int rmdir(const char *path) { return removed(AT_FDCWD, path, AT_REMOVEDIR); }

static int made(int at, const char *given, mode_t mode) {
  REAL(mkdirat);
  char name[1024];
  const char *path = watched() ? absolute(at, given, name, sizeof name) : given;
  if (!watched() || !below(path)) return real_mkdirat(at, given, mode);
  enum action action = enter("mkdir", path);
  if (fails(action)) return -1;
  int failed = real_mkdirat(at, given, mode);
  if (!failed) record_path(MAKE_FOLDER, path, 0);
  leave(action);
  return failed;
}

int mkdir(const char *path, mode_t mode) { return made(AT_FDCWD, path, mode); }
int mkdirat(int at, const char *path, mode_t mode) { return made(at, path, mode); }

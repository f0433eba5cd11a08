/* keel_base.h: the types that hosts and plugins share. C99; needs stddef.h and stdint.h only.
 *
 * Read this first, then keel.h (programs that run graphs) or keel_plugin.h (devices, importers).
 * The rules behind it (what may change, and how) are in abi/README.md. Sizes are in bytes, strings
 * are UTF-8, integers are little-endian in memory.
 */
#ifndef KEEL_BASE_H
#define KEEL_BASE_H
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

/* A plugin's MAJOR is in the symbol that it exports; MINOR only appends. While MAJOR is 0 nothing is
 * promised: DRAFT must match exactly. */
#define KEEL_ABI_MAJOR 0
#define KEEL_ABI_MINOR 0
#define KEEL_ABI_DRAFT 4

/* No struct here has tail padding, so sizeof() is an honest struct_size. */
#if defined(__cplusplus) && __cplusplus >= 201103L
#define KEEL_ASSERT(c, m) static_assert(c, m)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define KEEL_ASSERT(c, m) _Static_assert(c, m)
#else
#define KEEL_ASSERT(c, m) extern char keel_assert_unused[(c) ? 1 : -1]
#endif
#define KEEL_END(T, f) (offsetof(T, f) + sizeof(((T*)0)->f))
#define KEEL_SEALED(T, last) \
  KEEL_ASSERT(sizeof(T) == KEEL_END(T, last), #T ": tail padding or a stale last field")
/* Is member f of *p inside what the other side says it has, and not null? */
#define KEEL_HAS(p, T, f) ((p)->struct_size >= KEEL_END(T, f) && (p)->f)

/* Every call that can fail returns one of these; 0 is success. */
typedef int32_t keel_rc;
enum {
  KEEL_OK = 0,
  KEEL_CANCELLED = 1,    /* a callback, the caller or a time limit asked to stop */
  KEEL_UNKNOWN = 2,      /* a plugin failed without saying why */
  KEEL_INVALID = 3,      /* malformed input: wrong shape, dtype, text or file */
  KEEL_NOT_FOUND = 5,    /* no such file, entry, value, op or device */
  KEEL_EXISTS = 6,       /* the name is taken */
  KEEL_OOM = 8,          /* memory or a stated limit is exhausted */
  KEEL_PRECONDITION = 9, /* something else must be done or given first */
  KEEL_RANGE = 11,       /* data out of range: an index, a division by zero */
  KEEL_UNIMPLEMENTED = 12,
  KEEL_INTERNAL = 13,   /* a defect of Keel: please report it */
  KEEL_UNAVAILABLE = 14 /* a device or a library is not usable here */
};

typedef struct keel_str { /* not NUL-terminated */
  const char* data;
  uint64_t size;
} keel_str;

typedef struct keel_kv { /* NUL-terminated option name and value */
  const char* key;
  const char* value;
} keel_kv;

/* The next three have the layout of DLPack's DLDataType, DLDevice and DLTensor. */
typedef struct keel_dtype {
  uint8_t code, bits;
  uint16_t lanes;
} keel_dtype;
typedef struct keel_devid {
  int32_t type, id;
} keel_devid;
typedef struct keel_tensor {
  void* data; /* first element at data + byte_offset */
  keel_devid device;
  int32_t ndim; /* 0 to KEEL_MAX_RANK */
  keel_dtype dtype;
  int64_t* shape;   /* ndim numbers; -1: not known */
  int64_t* strides; /* in elements; NULL: row-major, contiguous */
  uint64_t byte_offset;
} keel_tensor;
KEEL_SEALED(keel_tensor, byte_offset);
#define KEEL_MAX_RANK 8

/* Where a dtype is one argument it travels as these four bytes of keel_dtype: code | bits<<8 | lanes<<16. */
typedef uint32_t keel_dt;
#define KEEL_DT(code, bits) ((uint32_t)(code) | (uint32_t)(bits) << 8 | (uint32_t)1 << 16)
#define KEEL_I8 KEEL_DT(0, 8)
#define KEEL_I16 KEEL_DT(0, 16)
#define KEEL_I32 KEEL_DT(0, 32)
#define KEEL_I64 KEEL_DT(0, 64)
#define KEEL_U8 KEEL_DT(1, 8)
#define KEEL_U16 KEEL_DT(1, 16)
#define KEEL_U32 KEEL_DT(1, 32)
#define KEEL_U64 KEEL_DT(1, 64)
#define KEEL_F16 KEEL_DT(2, 16)
#define KEEL_F32 KEEL_DT(2, 32)
#define KEEL_F64 KEEL_DT(2, 64)
#define KEEL_BF16 KEEL_DT(4, 16)
#define KEEL_BOOL KEEL_DT(6, 8) /* one byte, 0 or 1 */

/* A dim of a graph under construction: a number, or a handle of an expression in symbols ("b", "2*b")
 * that belongs to one module. Only dims below KEEL_DIM_HANDLES are handles. */
typedef int64_t keel_dim;
#define KEEL_DIM_HANDLES (-((int64_t)1 << 62))
#define KEEL_DIM_IS_HANDLE(d) ((d) < KEEL_DIM_HANDLES)

typedef uint32_t keel_value;      /* one tensor of one graph, by number */
#define KEEL_NO_VALUE 0xffffffffu /* an operand that is left out */

enum {
  KEEL_ATTR_NONE = 0,
  KEEL_ATTR_BOOL = 1,   /* i: 0 or 1 */
  KEEL_ATTR_I64 = 2,    /* i */
  KEEL_ATTR_F64 = 3,    /* f */
  KEEL_ATTR_STR = 4,    /* p: count chars; also how enum attributes travel */
  KEEL_ATTR_DTYPE = 5,  /* i: a keel_dt */
  KEEL_ATTR_DIM = 6,    /* i: a keel_dim */
  KEEL_ATTR_I64S = 7,   /* p: count int64_t */
  KEEL_ATTR_F64S = 8,   /* p: count double */
  KEEL_ATTR_DIMS = 9,   /* p: count keel_dim */
  KEEL_ATTR_GRAPH = 10, /* i: number of a graph of the same module (keel_graph_number) */
  KEEL_ATTR_VAR = 11,   /* i: number of a variable of the same module */
  KEEL_ATTR_GRAPHS = 12 /* p: count int64_t, numbers of graphs */
};
typedef struct keel_attr {
  int32_t kind;
  uint32_t count;
  int64_t i;
  double f;
  const void* p; /* borrowed: from a caller for the call, from Keel as long as the node lives */
} keel_attr;
KEEL_SEALED(keel_attr, p);

#ifdef __cplusplus
}
#endif
#endif

/* keel_base.h: the types that programs and plugins share. C99; needs stddef.h and stdint.h only.
 *
 * Read this first, then keel.h (programs that run graphs) or keel_plugin.h (devices, passes, importers). The
 * rules for changes of these headers are in abi/README.md. Sizes are in bytes, strings are UTF-8, integers
 * are little-endian in memory.
 */
#ifndef KEEL_BASE_H
#define KEEL_BASE_H
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

/* A plugin's MAJOR is in the symbol that it exports; MINOR only appends. While MAJOR is 0 nothing is
 * promised: DRAFT must match exactly. Plugins of another draft are refused; bindings compare
 * keel_abi_draft(). */
#define KEEL_ABI_MAJOR 0
#define KEEL_ABI_MINOR 0
#define KEEL_ABI_DRAFT 6

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
/* 1: the other side's struct_size includes member f of *p, and it is not NULL. */
#define KEEL_HAS(p, T, f) ((p)->struct_size >= KEEL_END(T, f) && (p)->f)

/* Marks for readers and for the generator of abi.json; they expand to nothing. Of a parameter, or of a field
 * of a struct: */
#define KEEL_NULLABLE  /* may be NULL; the comment states the meaning of NULL. Also of a function's result */
#define KEEL_COUNT(n)  /* a list (or bytes, or text) of n entries: a parameter, a number, or `returned` */
#define KEEL_FILLED(n) /* output: only the first n entries are written; n is an output, too */
#define KEEL_HOLES     /* a list whose entries may be NULL */
/* Of a parameter: */
#define KEEL_BORROWED /* output: stays the property of the first parameter's object; do not free it */
#define KEEL_TAKEN    /* input: belongs to Keel once the call has succeeded */
#define KEEL_KEPT     /* input: must outlive a call that succeeded; the comment states how long */
/* Of a handle: */
#define KEEL_SHARED   /* threads may use it at the same time */
#define KEEL_CONFINED /* one thread at a time */

/* Every function that can fail returns one of these. */
typedef int32_t keel_rc;
enum keel_status {
  KEEL_OK = 0,
  KEEL_CANCELLED = 1,      /* stopped by a callback, the caller or a time limit */
  KEEL_UNKNOWN = 2,        /* a plugin failed without a reason */
  KEEL_INVALID = 3,        /* malformed input: wrong shape, dtype, text or file */
  KEEL_NOT_FOUND = 5,      /* no such file, entry, value, op or device */
  KEEL_EXISTS = 6,         /* the name is taken */
  KEEL_OOM = 8,            /* memory or a stated limit is exhausted */
  KEEL_PRECONDITION = 9,   /* the state of an object does not allow this; the message states the need */
  KEEL_RANGE = 11,         /* data out of range: an index, a division by zero */
  KEEL_UNIMPLEMENTED = 12, /* not implemented for these types, or on this device */
  KEEL_INTERNAL = 13,      /* a defect of Keel: please report it */
  KEEL_UNAVAILABLE = 14    /* a device or a library is not usable here */
};

typedef struct keel_str { /* not NUL-terminated */
  const char* data KEEL_COUNT(size);
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
  KEEL_NULLABLE void* data; /* first element at data + byte_offset; NULL: no elements, or a symbolic array */
  keel_devid device;        /* {1, 0}: host memory */
  int32_t ndim;             /* 0 to KEEL_MAX_RANK */
  keel_dtype dtype;
  int64_t* shape KEEL_COUNT(ndim);                 /* -1: not known */
  KEEL_NULLABLE int64_t* strides KEEL_COUNT(ndim); /* in elements; NULL: row-major, needed if packed */
  uint64_t byte_offset;
} keel_tensor;
KEEL_SEALED(keel_tensor, byte_offset);
#define KEEL_MAX_RANK 8

/* A dtype as a number: the four bytes of keel_dtype, code | bits << 8 | lanes << 16. */
typedef uint32_t keel_dt;
#define KEEL_DT(code, bits) ((uint32_t)(code) | (uint32_t)(bits) << 8 | (uint32_t)1 << 16)
enum keel_dtype_id {
  KEEL_I8 = 0x10800,
  KEEL_I16 = 0x11000,
  KEEL_I32 = 0x12000,
  KEEL_I64 = 0x14000,
  KEEL_U8 = 0x10801,
  KEEL_U16 = 0x11001,
  KEEL_U32 = 0x12001,
  KEEL_U64 = 0x14001,
  KEEL_F16 = 0x11002,
  KEEL_F32 = 0x12002,
  KEEL_F64 = 0x14002,
  KEEL_BF16 = 0x11004,
  KEEL_BOOL = 0x10806, /* one byte, 0 or 1 */
  /* Storage dtypes: no op computes with them. `cast` converts them to and from all others; identity, reshape,
   * variables, control ops, files and texts move them whole; every other op refuses them. */
  KEEL_F8E4M3FN = 0x1080a,   /* 1 sign, 4 exponent, 3 mantissa bits; up to 448; NaN, no infinities */
  KEEL_F8E4M3FNUZ = 0x1080b, /* up to 240; one zero; 0x80 is NaN */
  KEEL_F8E5M2 = 0x1080c,     /* as IEEE 754: up to 57344, infinities, NaN */
  KEEL_F8E5M2FNUZ = 0x1080d, /* up to 57344; one zero; 0x80 is NaN */
  KEEL_F8E8M0 = 0x1080e,     /* 2^(byte - 127): no sign, no zero; 0xff is NaN */
  KEEL_I4 = 0x10400,         /* these five are packed: see keel_bytes */
  KEEL_U4 = 0x10401,
  KEEL_I2 = 0x10200,
  KEEL_U2 = 0x10201,
  KEEL_F4E2M1 = 0x10411 /* 1 sign, 2 exponent, 1 mantissa bit: 0, 0.5, 1, 1.5, 2, 3, 4, 6 */
};

/* Bytes of `count` elements. Elements of less than a byte are packed as in ONNX and DLPack: two 4-bit or four
 * 2-bit elements a byte, the first in the lowest bits. They are row-major without gaps between rows; the
 * first element begins a byte, and the unused bits of the last byte are 0 in results of Keel and ignored
 * elsewhere. */
static inline uint64_t keel_bytes(keel_dt dtype, int64_t count) {
  return ((uint64_t)count * (dtype >> 8 & 0xff) + 7) / 8;
}

/* A dim of a graph under construction: a number, or a handle of an expression in symbols ("b", "2*b")
 * that belongs to one module. Only dims below KEEL_DIM_HANDLES are handles. */
typedef int64_t keel_dim;
#define KEEL_DIM_HANDLES (-((int64_t)1 << 62))
#define KEEL_DIM_IS_HANDLE(d) ((d) < KEEL_DIM_HANDLES)

typedef uint32_t keel_value;      /* one tensor of one graph, by number */
#define KEEL_NO_VALUE 0xffffffffu /* no value: an omitted operand */

enum keel_attr_kind { /* the member of keel_attr that holds the value */
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
  /* Borrowed: a caller's for the call, Keel's as long as the node lives. NULL: the kind has no list. */
  KEEL_NULLABLE const void* p;
} keel_attr;
KEEL_SEALED(keel_attr, p);

#ifdef __cplusplus
}
#endif
#endif

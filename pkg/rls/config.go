package rls

// Config is what the operator chose. The zero value counts and answers, with
// everything optional off.
type Config struct {
	// KeyPrefix stands before every counter's name in the store.
	KeyPrefix string
	// NearLimitRatio is the part of a limit above which hits count as near
	// it; 0 means that all do.
	NearLimitRatio float32
	// ShadowMode answers OK whatever the limits say. Statuses keep their
	// codes.
	ShadowMode bool
	// QuotaMode makes every descriptor a quota.
	QuotaMode bool
	// DynamicMetadata repeats the request, and the matched rules' metadata,
	// in the answer.
	DynamicMetadata bool

	// HeadersEnabled adds three response headers about one limit. Empty names
	// are DefaultHeaderLimit, -Remaining and -Reset.
	HeadersEnabled                            bool
	HeaderLimit, HeaderRemaining, HeaderReset string
	// IETFHeaders adds the fields RateLimit-Policy and RateLimit of
	// draft-ietf-httpapi-ratelimit-headers, which tell about every limit.
	IETFHeaders bool

	// MaxDescriptors bounds a request; 0 means DefaultMaxDescriptors.
	MaxDescriptors int
}

// Names of the response headers where the operator gave none.
const (
	DefaultHeaderLimit     = "RateLimit-Limit"
	DefaultHeaderRemaining = "RateLimit-Remaining"
	DefaultHeaderReset     = "RateLimit-Reset"
)

// DefaultMaxDescriptors bounds the work of one request. Envoy sends one
// descriptor per configured action list, so that real requests stay far below.
const DefaultMaxDescriptors = 10000

func (c Config) withDefaults() Config {
	if c.HeaderLimit == "" {
		c.HeaderLimit = DefaultHeaderLimit
	}
	if c.HeaderRemaining == "" {
		c.HeaderRemaining = DefaultHeaderRemaining
	}
	if c.HeaderReset == "" {
		c.HeaderReset = DefaultHeaderReset
	}
	if c.MaxDescriptors <= 0 {
		c.MaxDescriptors = DefaultMaxDescriptors
	}
	return c
}

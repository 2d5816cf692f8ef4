package rls

import (
	"fmt"
	"unicode/utf8"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// incoming is a request on its way in: grpc-go decodes into it.
type incoming struct {
	req rlsv3.RateLimitRequest
	// err is why the request cannot be read, an *invalidError.
	err error
}

// requestCodec is grpc-go's protobuf codec, which can also decode an incoming.
// A request that cannot be read is then no error to grpc-go, which would answer
// INTERNAL by itself: the service answers it, and says which descriptor it is.
// Envoy passes on the bytes of HTTP headers, so that text which is not UTF-8
// does arrive.
type requestCodec struct{ encoding.CodecV2 }

func newRequestCodec() requestCodec { return requestCodec{encoding.GetCodecV2(proto.Name)} }

func (c requestCodec) Unmarshal(data mem.BufferSlice, v any) error {
	in, ok := v.(*incoming)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	if err := c.CodecV2.Unmarshal(data, &in.req); err != nil {
		why := findBadText(data.Materialize())
		if why == "" {
			why = err.Error()
		}
		in.err = &invalidError{-1, "request cannot be read: " + why}
	}
	return nil
}

// Field numbers of RateLimitRequest, RateLimitDescriptor and its Entry.
const (
	fieldDomain      = 1
	fieldDescriptors = 2
	fieldEntries     = 1
	fieldKey         = 1
	fieldValue       = 2
)

// findBadText finds the first text of a request that is not UTF-8, and says
// where it stands; "" if there is none, or the request is broken otherwise.
func findBadText(request []byte) string {
	why, descriptor := "", 0
	eachField(request, func(field protowire.Number, b []byte) bool {
		switch {
		case field == fieldDomain && !utf8.Valid(b):
			why = "domain is not valid UTF-8"
		case field == fieldDescriptors:
			if text := findBadEntry(b); text != "" {
				why = fmt.Sprintf("descriptors[%d]: %s", descriptor, text)
			}
			descriptor++
		}
		return why == ""
	})
	return why
}

func findBadEntry(descriptor []byte) string {
	why, entry := "", 0
	eachField(descriptor, func(field protowire.Number, b []byte) bool {
		if field != fieldEntries {
			return true
		}
		eachField(b, func(field protowire.Number, b []byte) bool {
			switch {
			case utf8.Valid(b):
			case field == fieldKey:
				why = fmt.Sprintf("entries[%d].key is not valid UTF-8", entry)
			case field == fieldValue:
				why = fmt.Sprintf("entries[%d].value is not valid UTF-8", entry)
			}
			return why == ""
		})
		entry++
		return why == ""
	})
	return why
}

// eachField calls f with each length-delimited field of a message until f
// returns false or the message cannot be read further.
func eachField(message []byte, f func(protowire.Number, []byte) bool) {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return
		}
		message = message[n:]
		if kind != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(number, kind, message); n < 0 {
				return
			}
			message = message[n:]
			continue
		}
		value, n := protowire.ConsumeBytes(message)
		if n < 0 || !f(number, value) {
			return
		}
		message = message[n:]
	}
}

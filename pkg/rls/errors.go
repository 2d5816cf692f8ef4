// This file is the only one that chooses gRPC codes.

package rls

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Errors of a request as a whole, with the words of envoyproxy/ratelimit.
var (
	errNoDomain      = errors.New("rate limit domain must not be empty")
	errNoDescriptors = errors.New("rate limit descriptor list must not be empty")
	errNoRules       = errors.New("no rate limit configuration loaded")
)

// invalidError is a request that cannot be meant.
type invalidError struct {
	// descriptor is the position of the one at fault, -1 for none.
	descriptor int
	why        string
}

func (e *invalidError) Error() string {
	if e.descriptor < 0 {
		return e.why
	}
	return fmt.Sprintf("descriptors[%d]: %s", e.descriptor, e.why)
}

// storeError is what the Decider returned.
type storeError struct{ err error }

func (e *storeError) Error() string { return e.err.Error() }
func (e *storeError) Unwrap() error { return e.err }

// fail counts an error, and turns it into what the caller sees.
//
// The errors that envoyproxy/ratelimit knows keep its code, UNKNOWN, and its
// words: clients and dashboards match on them. What kills that service, or
// corrupts its counters, is INVALID_ARGUMENT here.
func (s *Service) fail(err error) error {
	var store *storeError
	if errors.As(err, &store) {
		s.storeErrors.Add(1)
		return status.Error(codes.Unknown, err.Error())
	}
	s.serviceErrors.Add(1)
	var invalid *invalidError
	if errors.As(err, &invalid) {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	return status.Error(codes.Unknown, err.Error())
}

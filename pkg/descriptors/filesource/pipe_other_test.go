//go:build !unix

package filesource

import "errors"

func makePipe(string) error { return errors.ErrUnsupported }

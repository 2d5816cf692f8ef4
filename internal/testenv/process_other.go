//go:build !linux

package testenv

import "syscall"

// dieWithParent has no equal outside Linux: there a killed test process
// leaves its children behind.
func dieWithParent() *syscall.SysProcAttr { return nil }

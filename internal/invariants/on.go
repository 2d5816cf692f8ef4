//go:build invariants || race

package invariants

// Enabled is true in builds that panic on a broken invariant.
const Enabled = true

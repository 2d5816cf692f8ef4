// Package arch holds the shape of the house as tests: which package may
// import which, where an outside library may be used, and what no file may
// do. Every rule carries its reason, and every exception too.
//
// Rules are data in rules.go. A new package needs a row there: writing it
// down is the moment to think about where the package stands.
package arch

package gale

// counts are one shard's figures; its lock guards them. INV-2 for the whole
// replica: granted = spent + held + returned + expired (lost ones were never
// granted to it).
type counts struct {
	leasesGranted, leasesRefused, leasesStale, leasesFailed uint64
	ahead, waits, evicted                                   uint64
	granted, spent, returned, expired, lost                 uint64
	decisions                                               [NumReasons]uint64
}

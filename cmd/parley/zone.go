package main

import (
	"os"
	"path/filepath"
	"strings"
	"time"
)

// machineZone is the machine's zone under its IANA name, which schedules keep; where
// that cannot be told it is UTC.
func machineZone() *time.Location {
	name := os.Getenv("TZ")
	if name == "" {
		target, err := filepath.EvalSymlinks("/etc/localtime")
		if err != nil {
			return time.UTC
		}
		_, name, _ = strings.Cut(target, "zoneinfo/")
	}
	if loc, err := time.LoadLocation(name); err == nil {
		return loc
	}
	return time.UTC
}

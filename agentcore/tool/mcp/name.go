package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
)

const maxName = 64

var (
	illegal = regexp.MustCompile(`[^A-Za-z0-9_-]`)
	plain   = regexp.MustCompile(`^mcp_[A-Za-z0-9-]+_[A-Za-z0-9_-]+$`)
	hashed  = regexp.MustCompile(`_[0-9a-f]{8}$`)
)

// toolName is what a model calls a server's tool: mcp_SERVER_TOOL where that is a
// legal name and can be no other tool's, else shortened and with a hash of both. A
// plain name is unique because the server's part has no underscore in it, and none
// ends like a hash.
func toolName(server, name string) string {
	full := "mcp_" + server + "_" + name
	if len(full) <= maxName && plain.MatchString(full) && !illegal.MatchString(full) && !hashed.MatchString(full) && server == serverPart(full) {
		return full
	}
	sum := sha256.Sum256([]byte(server + "\x00" + name))
	full = illegal.ReplaceAllString(full, "_")
	return full[:min(len(full), maxName-9)] + "_" + hex.EncodeToString(sum[:4])
}

// serverPart is what stands between the first two underscores.
func serverPart(full string) string {
	rest := full[len("mcp_"):]
	for i := range len(rest) {
		if rest[i] == '_' {
			return rest[:i]
		}
	}
	return rest
}

//go:build tools

// Keeps Traefik in go.mod, where its main package is built from.
package tools

import _ "github.com/traefik/traefik/v3/cmd/traefik"

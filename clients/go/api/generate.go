// Package api is the client of mockraft's HTTP API, generated from its OpenAPI document.
package api

//go:generate go run github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.5.1 -config oapi-codegen.yaml ../../openapi.json

module github.com/mockraft/mockraft/examples/go

go 1.24

require (
	github.com/mockraft/mockraft/clients/go v0.0.0
	github.com/twmb/franz-go v1.18.1
	github.com/twmb/franz-go/pkg/kmsg v1.11.2
)

require (
	github.com/apapsch/go-jsonmerge/v2 v2.0.0 // indirect
	github.com/google/uuid v1.5.0 // indirect
	github.com/klauspost/compress v1.17.11 // indirect
	github.com/oapi-codegen/runtime v1.1.2 // indirect
	github.com/pierrec/lz4/v4 v4.1.22 // indirect
)

replace github.com/mockraft/mockraft/clients/go => ../../clients/go

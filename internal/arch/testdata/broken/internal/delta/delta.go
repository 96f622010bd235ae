package delta

import (
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/parquet-go/parquet-go"
	"gopkg.in/yaml.v3"
)

var (
	_ s3.Client
	_ parquet.Schema
	_ yaml.Node
)

package worker_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"varve/internal/object/objecttest"
)

func TestWarehouseInS3IsReadThroughTheCacheOfTheProject(t *testing.T) {
	server := objecttest.StartS3(t)
	c := server.Config()
	t.Setenv("AWS_ACCESS_KEY_ID", c.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", c.SecretKey)
	dir := folder(t, map[string]string{
		"varve.yaml": "warehouse: {s3: " + server.NewBucket(t) + "/some/where, endpoint: \"" + server.Endpoint + "\", path_style: true}\n" +
			"landing: landing\nlimits: {cache: 64MiB}\n",
	})
	p := open(t, dir)
	const key = "silver/t/part-00000-d2c639aa-8816-431a-aaf6-d3fe2512ff61.c000.zstd.parquet"
	require.NoError(t, p.Engine.Warehouse.PutIfAbsent(t.Context(), key, []byte("columns")))
	body, err := p.Engine.Warehouse.Read(t.Context(), key, 3, -1)
	require.NoError(t, err)
	require.Equal(t, "umns", string(body))
	kept, err := filepath.Glob(filepath.Join(dir, ".varve", "cache", "*"))
	require.NoError(t, err)
	require.Len(t, kept, 1)
}

package schemas_test

import (
	"errors"
	"io"
	"testing"

	"varve/schemas"
)

func TestInFileNamesTheFileOnEveryLine(t *testing.T) {
	t.Parallel()
	_, err := schemas.Parse([]byte("dataset: a b\nkeys: []\n"))
	got := schemas.InFile(err, "a.yaml").Error()
	want := `a.yaml: line 1: source: is missing`
	if got[:len(want)] != want {
		t.Errorf("got %s", got)
	}
	if err := schemas.InFile(io.ErrUnexpectedEOF, "a.yaml"); !errors.Is(err, io.ErrUnexpectedEOF) || err.Error() != "a.yaml: unexpected EOF" {
		t.Errorf("got %v", err)
	}
	if err := schemas.InFile(nil, "a.yaml"); err != nil {
		t.Errorf("got %v", err)
	}
}

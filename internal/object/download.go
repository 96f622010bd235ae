package object

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// chunk is how much of an object is held in memory at once on its way to a Sink.
const chunk = 16 << 20 // bytes

// Sink takes an object piece by piece, in any order and from several goroutines. An *os.File is one.
type Sink interface {
	io.WriterAt
	// Truncate is told the object's size before its first byte, where the store knows it by then, and again where the store
	// begins anew. An error ends the download, as one of WriteAt does.
	Truncate(size int64) error
}

// Downloader is a store that has a way of its own to give a whole object without holding it in memory.
type Downloader interface {
	// Download writes the object as it was at one moment and gives its size in bytes. After an error the sink holds some of
	// it. The errors are those of Store.Read, and the sink's.
	Download(ctx context.Context, key string, to Sink) (int64, error)
}

// Download writes the whole object to a sink, which is empty, and gives its size in bytes. From a store that is no
// Downloader it is read chunk by chunk, and must not be replaced meanwhile; one that
// is removed before its last chunk is ErrUnavailable.
func Download(ctx context.Context, s Store, key string, to Sink) (int64, error) {
	if own, ok := s.(Downloader); ok {
		return own.Download(ctx, key, to)
	}
	for offset := int64(0); ; offset += chunk {
		body, err := s.Read(ctx, key, offset, chunk)
		if errors.Is(err, ErrNotFound) && offset > 0 {
			return 0, fmt.Errorf("%w: it was removed meanwhile: %w", ErrUnavailable, err)
		}
		if err != nil {
			return 0, err
		}
		if _, err := to.WriteAt(body, offset); err != nil {
			return 0, fmt.Errorf("read %q: %w", key, err)
		}
		if len(body) < chunk {
			return offset + int64(len(body)), nil
		}
	}
}

package schemas

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Duration is a length of time as contracts write it: 15m, 7d, 1y. A day has 24 hours, a year 365 days.
type Duration time.Duration

const (
	day  = 24 * time.Hour
	week = 7 * day
	year = 365 * day
)

type unit struct {
	name string
	size time.Duration
}

// units are the units of a duration, the largest first.
func units() []unit {
	return []unit{{"y", year}, {"w", week}, {"d", day}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}}
}

const durationForm = "a duration such as 15m, 7d or 1y"

// ParseDuration reads a whole number with one of the units s, m, h, d, w, y.
func ParseDuration(text string) (Duration, error) {
	for _, u := range units() {
		number, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || n < 0 || strings.HasPrefix(number, "+") {
			break
		}
		if n > math.MaxInt64/int64(u.size) {
			return 0, fmt.Errorf("duration %q is longer than 292 years", text)
		}
		return Duration(n * int64(u.size)), nil
	}
	return 0, fmt.Errorf("%q is not %s", text, durationForm)
}

// Std gives the duration as the standard library's.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// String gives the text that ParseDuration reads, in the largest unit that divides it.
func (d Duration) String() string {
	for _, u := range units() {
		if d != 0 && d.Std()%u.size == 0 {
			return strconv.FormatInt(int64(d.Std()/u.size), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(d.Std()/time.Second), 10) + "s"
}

// MarshalText gives String.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what MarshalText gives.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := ParseDuration(string(text))
	if err != nil {
		return err
	}
	*d = parsed
	return nil
}

const sizeForm = "a size such as 128MiB or 2GiB"

// parseSize reads a whole number of KiB, MiB, GiB or TiB, in bytes.
func parseSize(text string) (int64, error) {
	for i, name := range []string{"KiB", "MiB", "GiB", "TiB"} {
		number, ok := strings.CutSuffix(text, name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
		if err != nil || n <= 0 || n > math.MaxInt64>>(10*(i+1)) {
			break
		}
		return n << (10 * (i + 1)), nil
	}
	return 0, fmt.Errorf("%q is not %s", text, sizeForm)
}

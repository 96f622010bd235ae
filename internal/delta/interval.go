package delta

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// The defaults of table properties that are durations.
const (
	defaultFileRetention = 7 * 24 * time.Hour
	defaultLogRetention  = 30 * 24 * time.Hour
)

// fileRetention is how long removed files are remembered and kept. Spark: delta.deletedFileRetentionDuration.
func (m Metadata) fileRetention() (time.Duration, error) {
	return m.interval("delta.deletedFileRetentionDuration", defaultFileRetention)
}

// logRetention is how long versions are kept. Spark: delta.logRetentionDuration.
func (m Metadata) logRetention() (time.Duration, error) {
	return m.interval("delta.logRetentionDuration", defaultLogRetention)
}

// interval reads a property that is a duration. One that is not understood is an error: to guess might delete too early.
func (m Metadata) interval(property string, otherwise time.Duration) (time.Duration, error) {
	text, ok := m.Configuration[property]
	if !ok {
		return otherwise, nil
	}
	d, err := parseInterval(text)
	if err != nil {
		return 0, fmt.Errorf("property %s: %w; set it as in \"interval 7 days\"", property, err)
	}
	return d, nil
}

// parseInterval reads an interval as Spark writes it: "interval", which may be missing, then numbers and units. Months and
// years have no fixed length and are refused, as Spark does.
func parseInterval(text string) (time.Duration, error) {
	fields := strings.Fields(strings.ToLower(text))
	if len(fields) > 0 && fields[0] == "interval" {
		fields = fields[1:]
	}
	if len(fields) == 0 || len(fields)%2 != 0 {
		return 0, fmt.Errorf("%q is no interval", text)
	}
	var sum time.Duration
	for i := 0; i < len(fields); i += 2 {
		n, err := strconv.ParseInt(fields[i], 10, 64)
		unit := intervalUnit(strings.TrimSuffix(fields[i+1], "s"))
		if err != nil || unit == 0 || n < 0 {
			return 0, fmt.Errorf("%q is no interval", text)
		}
		if n > (math.MaxInt64-int64(sum))/int64(unit) {
			return 0, fmt.Errorf("%q is too long an interval", text)
		}
		sum += time.Duration(n) * unit
	}
	return sum, nil
}

// intervalUnit gives the length of a unit, 0 where there is no such unit.
func intervalUnit(name string) time.Duration {
	switch name {
	case "week":
		return 7 * 24 * time.Hour
	case "day":
		return 24 * time.Hour
	case "hour":
		return time.Hour
	case "minute":
		return time.Minute
	case "second":
		return time.Second
	case "millisecond":
		return time.Millisecond
	case "microsecond":
		return time.Microsecond
	default:
		return 0
	}
}

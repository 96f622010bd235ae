package schemas

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// cron is a time of day and calendar that a schedule names: bit i of a field is set where the value i matches.
type cron struct{ minute, hour, dayOfMonth, month, dayOfWeek uint64 }

type cronField struct {
	name        string
	least, most int
	words       []string
}

func cronFields() []cronField {
	return []cronField{
		{name: "minute", most: 59},
		{name: "hour", most: 23},
		{name: "day of month", least: 1, most: 31},
		{name: "month", least: 1, most: 12, words: []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
		{name: "day of week", most: 7, words: []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
	}
}

// parseCron reads the five fields that Temporal's schedules read, with the same meaning.
func parseCron(text string) (cron, error) {
	parts := strings.Fields(text)
	fields := cronFields()
	if len(parts) != len(fields) {
		return cron{}, fmt.Errorf("a cron has five fields (minute, hour, day of month, month, day of week), this has %d", len(parts))
	}
	var bits [5]uint64
	for i, f := range fields {
		var err error
		if bits[i], err = f.parse(parts[i]); err != nil {
			return cron{}, err
		}
	}
	if sunday := uint64(1) << 7; bits[4]&sunday != 0 {
		bits[4] = bits[4]&^sunday | 1
	}
	return cron{bits[0], bits[1], bits[2], bits[3], bits[4]}, nil
}

// parse reads *, a value, a range, each with an optional step, and lists of them.
func (f cronField) parse(text string) (uint64, error) {
	var bits uint64
	for part := range strings.SplitSeq(text, ",") {
		span, stepText, hasStep := strings.Cut(part, "/")
		step := 1
		if hasStep {
			var err error
			if step, err = strconv.Atoi(stepText); err != nil || step < 1 || step > f.most {
				return 0, fmt.Errorf("%s: %q is not a step", f.name, stepText)
			}
		}
		from, to := f.least, f.most
		if span != "*" {
			first, second, isRange := strings.Cut(span, "-")
			var err error
			if from, err = f.value(first); err != nil {
				return 0, err
			}
			switch {
			case isRange:
				if to, err = f.value(second); err != nil {
					return 0, err
				}
			case !hasStep:
				to = from
			}
			if to < from {
				return 0, fmt.Errorf("%s: %q ends before it begins", f.name, span)
			}
		}
		for v := from; v <= to; v += step {
			bits |= 1 << v
		}
	}
	return bits, nil
}

func (f cronField) value(text string) (int, error) {
	for i, w := range f.words {
		if strings.EqualFold(w, text) {
			return i + f.least, nil
		}
	}
	v, err := strconv.Atoi(text)
	if err != nil || v < f.least || v > f.most {
		return 0, fmt.Errorf("%s: %q is not from %d to %d", f.name, text, f.least, f.most)
	}
	return v, nil
}

// at says whether a wall clock time, given as if it were UTC, matches.
func (c cron) at(t time.Time) bool {
	has := func(bits uint64, v int) bool { return bits&(1<<v) != 0 }
	return has(c.minute, t.Minute()) && has(c.hour, t.Hour()) && has(c.dayOfMonth, t.Day()) && has(c.month, int(t.Month())) &&
		has(c.dayOfWeek, int(t.Weekday()))
}

// all says whether every value of a range is set.
func all(bits uint64, least, most int) bool {
	for v := least; v <= most; v++ {
		if bits&(1<<v) == 0 {
			return false
		}
	}
	return true
}

func (r *reader) checkSchedule(s Schedule) {
	const field = "schedule.cron"
	zone, err := time.LoadLocation(s.TimeZone)
	known := err == nil && s.TimeZone != "Local"
	if !known {
		r.addAt("schedule.time_zone", fmt.Sprintf("there is no time zone %q", s.TimeZone), "use a name such as Europe/Berlin or UTC")
	}
	if s.Cron == "" {
		return
	}
	c, err := parseCron(s.Cron)
	if err != nil {
		r.addAt(field, err.Error(), `as "30 3 * * *", every day at 3:30`)
		return
	}
	never := true
	for t := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC); t.Year() < 2032 && never; t = t.AddDate(0, 0, 1) {
		never = !c.someTimeOn(t)
	}
	if never {
		r.addAt(field, "no day matches it", "day of month, month and day of week must all match")
		return
	}
	if !all(c.dayOfMonth, 1, 31) && !all(c.dayOfWeek, 0, 6) {
		r.warnAt(field, "day of month and day of week must both match", "cron on Unix takes either; put * in one of them")
	}
	if known && !all(c.hour, 0, 23) {
		if odd := c.oddHour(zone); odd != "" {
			r.warnAt(field, odd, "choose an hour that every day of the zone has once, or time_zone: UTC")
		}
	}
}

// someTimeOn says whether any time of a day matches.
func (c cron) someTimeOn(t time.Time) bool {
	c.hour, c.minute = 1, 1
	return c.at(t)
}

// oddHour tells of a time of the schedule that the zone skips or repeats when its clocks change. The zone's rules are looked
// at over a fixed span of years, so that the answer does not hang on the day it is asked.
func (c cron) oddHour(zone *time.Location) string {
	from, until := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2036, 1, 1, 0, 0, 0, 0, time.UTC)
	for t := from; t.Before(until); {
		_, change := t.In(zone).ZoneBounds()
		if change.IsZero() || change.After(until) {
			return ""
		}
		_, before := change.Add(-time.Second).In(zone).Zone()
		_, after := change.In(zone).Zone()
		// The wall clock jumps from one of these to the other; what lies between is skipped, or comes twice.
		a := change.UTC().Add(time.Duration(before) * time.Second)
		b := change.UTC().Add(time.Duration(after) * time.Second)
		what := "does not exist"
		if b.Before(a) {
			a, b, what = b, a, "comes twice"
		}
		for wall := a; wall.Before(b); wall = wall.Add(time.Minute) {
			if c.at(wall) {
				return fmt.Sprintf("%s %s in %s, whose clocks change then", wall.Format("2006-01-02 15:04"), what, zone)
			}
		}
		t = change
	}
	return ""
}

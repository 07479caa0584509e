"""`konverge check`: finds the bugs of any operator by what goes wrong around it. docs/check/design.md has the parts."""

module streams

go 1.22

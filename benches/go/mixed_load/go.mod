module mixed_load

go 1.21

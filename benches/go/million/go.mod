module million

go 1.21

module offload

go 1.22

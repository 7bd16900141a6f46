module switch

go 1.21

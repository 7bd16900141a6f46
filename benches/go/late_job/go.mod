module late_job

go 1.21

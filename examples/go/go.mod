module example.org/mockraft-go

go 1.19

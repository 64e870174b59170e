// go_redis.go PORT PROTOCOL - asks the module by go-redis's typed calls, and prints one line for
// each answer.  It ends with status 1 at the first error.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/redis/go-redis/v9"
)

func must(err error) {
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}

func say(name string, value any, err error) {
	must(err)
	fmt.Println(name, value)
}

func bloom(ctx context.Context, c *redis.Client) {
	must(c.BFReserve(ctx, "b", 0.01, 100).Err())
	added, err := c.BFAdd(ctx, "b", "a").Result()
	say("bf.add", added, err)
	many, err := c.BFMAdd(ctx, "b", "a", "c").Result()
	say("bf.madd", many, err)
	there, err := c.BFExists(ctx, "b", "a").Result()
	say("bf.exists", there, err)
	many, err = c.BFMExists(ctx, "b", "a", "nobody").Result()
	say("bf.mexists", many, err)
	items, err := c.BFCard(ctx, "b").Result()
	say("bf.card", items, err)
	many, err = c.BFInsert(ctx, "i", &redis.BFInsertOptions{Capacity: 50, Error: 0.1, Expansion: 4}, "a").Result()
	say("bf.insert", many, err)
	info, err := c.BFInfo(ctx, "i").Result()
	say("bf.info", fmt.Sprint(info.Filters, info.ItemsInserted, info.ExpansionRate), err)
	one, err := c.BFInfoItems(ctx, "i").Result()
	say("bf.info items", one.ItemsInserted, err)
	piece, err := c.BFScanDump(ctx, "b", 0).Result()
	say("bf.scandump", piece.Iter, err)
	must(c.BFLoadChunk(ctx, "copy", piece.Iter, piece.Data).Err())
	for piece.Iter != 0 {
		piece, err = c.BFScanDump(ctx, "b", piece.Iter).Result()
		must(err)
		if piece.Iter != 0 {
			must(c.BFLoadChunk(ctx, "copy", piece.Iter, piece.Data).Err())
		}
	}
	there, err = c.BFExists(ctx, "copy", "c").Result()
	say("bf.loadchunk", there, err)
}

func cuckoo(ctx context.Context, c *redis.Client) {
	must(c.CFReserveWithArgs(ctx, "c", &redis.CFReserveOptions{Capacity: 1000, BucketSize: 2, MaxIterations: 20, Expansion: 1}).Err())
	added, err := c.CFAdd(ctx, "c", "a").Result()
	say("cf.add", added, err)
	added, err = c.CFAddNX(ctx, "c", "a").Result()
	say("cf.addnx", added, err)
	many, err := c.CFInsert(ctx, "c", nil, "a", "d").Result()
	say("cf.insert", many, err)
	numbers, err := c.CFInsertNX(ctx, "c", nil, "a", "e").Result()
	say("cf.insertnx", numbers, err)
	there, err := c.CFExists(ctx, "c", "d").Result()
	say("cf.exists", there, err)
	many, err = c.CFMExists(ctx, "c", "d", "nobody").Result()
	say("cf.mexists", many, err)
	copies, err := c.CFCount(ctx, "c", "a").Result()
	say("cf.count", copies, err)
	gone, err := c.CFDel(ctx, "c", "d").Result()
	say("cf.del", gone, err)
	info, err := c.CFInfo(ctx, "c").Result()
	say("cf.info", fmt.Sprint(info.NumFilters, info.NumItemsInserted, info.NumItemsDeleted, info.ExpansionRate, info.MaxIteration), err)
	for piece := (redis.ScanDump{}); ; {
		piece, err = c.CFScanDump(ctx, "c", piece.Iter).Result()
		if err == redis.Nil { // the end of a dump of RedisBloom's, too: 0 and a null
			break
		}
		must(err)
		must(c.CFLoadChunk(ctx, "ccopy", piece.Iter, piece.Data).Err())
	}
	copies, err = c.CFCount(ctx, "ccopy", "a").Result()
	say("cf.loadchunk", copies, err)
}

// A pipeline fails as a whole if one reply cannot be read.
func pipeline(ctx context.Context, c *redis.Client) {
	pipe := c.Pipeline()
	info, card := pipe.BFInfo(ctx, "b"), pipe.BFCard(ctx, "b")
	of, more := pipe.CFInfo(ctx, "c"), pipe.CFExists(ctx, "c", "a")
	_, err := pipe.Exec(ctx)
	say("pipeline", fmt.Sprint(info.Val().ItemsInserted, card.Val(), of.Val().NumFilters, more.Val()), err)
}

func main() {
	protocol, err := strconv.Atoi(os.Args[2])
	must(err)
	ctx := context.Background()
	c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + os.Args[1], Protocol: protocol})
	defer c.Close()
	bloom(ctx, c)
	cuckoo(ctx, c)
	pipeline(ctx, c)
}

"""What the driver and the tasks of a stream on Spark say to each other, and what becomes of it when one of them dies.

    driver: plans, commits                         task A: shards 0, 2                   task B: shards 1, 3
    (resident_engine, crew)                        (resident_task, peers)                (resident_task, peers)
       |                                              |                                     |
       |  <- hello: name, where others ask it         |                                     |
       |  take 0, 2 at 180 ->                         |  loads states, steps up to 180      |
       |  take 1, 3 at 180 ----------------------------------------------------------->     |
       |                                              |                                     |
       |  step 180 .. 183, era, who holds what ->     |                                     |
       |  step 180 .. 183 ------------------------------------------------------------>     |
       |                                              |  packets of 182 ->                  |   each decodes a share
       |                                              |  <- packets of 180, 181             |   (decoding)
       |                                              |  guests of 1, 3 ->                  |   who is near (guests)
       |                                              |  layers: match these points ->      |   some regions (layers)
       |  <- stepped 0, 2: changes, notes, its share  |                                     |   what is archived
       |  <- stepped 1, 3 -----------------------------------------------------------       |
       |                                              |                                     |
       |  tell 1: write what you kept -------------------------------------------------->   |   a backlog (results)
       |  <- told 1: names of files, the rest ------------------------------------------    |
       |                                              |                                     |
       |  store ->   (every 10 s)                     |  stores states (eras)               |
       |  <- stored 0, 2 up to 183                    |                                     |
       |  <- alive, what it takes   (every 3 s)       |                                     |
       |  drop 2, end ->                              |                                     |

A message is a head of JSON and a body of bytes, on a connection that both ends open with the key of the run (wire). The
driver listens, and each task connects to it; each task listens, and whoever asks it connects. What is asked is answered
on the same connection, in order. `failed` in the place of an answer is an error of the other end, raised at this one.

    who dies, or says nothing for 15 s   what becomes of it
    a task                               the driver closes its connection and hears nothing more of it; its shards go to
                                         those that live, which load the newest states and are asked that plan again:
                                         its answer is the same. Spark starts another task, which says hello. What
                                         nobody hands over of what was decoded, the driver decodes
    a task that others ask               whoever asks answers for itself, from the log, the tables of layers and the
                                         stored states, until the driver names the members anew
    the driver                           its tasks see their connections close, and end. The next driver begins behind
                                         the last commit; files that no commit names are nothing
    all tasks                            the driver waits for others; before the first come, it steps the shards itself

Nothing here decides an answer: that is `operators`. Begin with `crew`, and with `resident_task` at the other end.
"""

// needs: python
import t from 'tap'
import { executeOnce } from '../testing/execute.ts'
import { stepRequest } from '../testing/model-source.ts'
import {
  answerWith,
  bytesRequestInput,
  loadPythonModel,
  pythonModel,
  WITHOUT_PYTHON,
} from '../testing/python-model.ts'

const AT_ONCE = { restartFirstMs: 0, restartLongestMs: 0 }

const HOSTILE = `
import random, struct

def hostile(seed):
    """Writes frames that are well cut and mean nothing, or something wrong, on the model's own connection."""
    import gc
    from tutti_worker.connection import Connection
    connection = next(o for o in gc.get_objects() if isinstance(o, Connection))
    dice = random.Random(seed)
    for _ in range(dice.randrange(1, 4)):
        meta = dice.choice([
            bytes(dice.randrange(256) for _ in range(dice.randrange(80))),
            b"{}", b"[]", b"null", b'{"bytes": -1}', b'{"bytes": 1e30}', b'{"note": "log"}', b'{"call": "load_model"}',
            struct.pack("<IIQQQ", 1, 1, 0, 0, 0) + struct.pack("<BBHII", 0, 1, 1, dice.choice([33, 0, 2**31]), 0)
            + struct.pack("<BBBBIQQqc", 2, 1, 1, 0, 1, dice.randrange(2**33), dice.randrange(2**20), dice.randrange(2**20), b"y"),
        ])
        connection.send(dice.randrange(30, 52), dice.randrange(4), meta, [b"x" * dice.randrange(40)])
`

await t.test(
  'frames that mean nothing end the process that wrote them, or nothing at all',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const code = pythonModel(
      `def execute(self, requests):
    x = pb_utils.get_input_tensor_by_name(requests[0], "x").as_numpy()
    if len(x) == 1:
        hostile(int(x[0]))
    return self.answer(requests)

${answerWith('x').replace('def execute', 'def answer')}`,
      HOSTILE,
    )
    for (const sharesMemory of [true, false]) {
      const model = await loadPythonModel(t, code, { sharesMemory, settings: AT_ONCE })
      for (let seed = 0; seed < 30; seed += 1) {
        // The process may answer its own requests with anything; what counts is that each is answered once.
        await executeOnce(model, [stepRequest([bytesRequestInput(seed)])])
      }
      const [next] = await executeOnce(model, [
        stepRequest([bytesRequestInput(...Buffer.from('next'))]),
      ])
      t.equal(Buffer.from(next?.outputs[0]?.data ?? []).toString(), 'next')
    }
  },
)

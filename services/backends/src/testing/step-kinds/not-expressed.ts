import type { StepKind } from './step-kind.ts'

const NETWORK = 'the network itself runs in it: a model of its own'
const TEXTS = 'it makes texts of numbers and names (JSON)'
const AUDIO = 'sound: there is no built-in for spectra'

/** Steps that no chain of built-ins computes. */
export const OTHER_KINDS: readonly StepKind[] = [
  {
    rows: [3],
    takes: 'UINT8[-1,-1,3]',
    makes: 'FP32[10], INT64[1], FP32[1]',
    does: 'ten scores of a picture, the best class and its score',
    expressed: 'the row does not tell how it comes to the scores',
  },
  {
    rows: [5],
    takes: 'UINT8[-1,-1,3]',
    makes: 'FP32[5], BOOL[1], STRING[1]',
    does: 'five scores of a picture, a decision and a name',
    expressed: 'the row does not tell how it comes to the scores',
  },
  {
    rows: [4],
    takes: 'FP32[1000], INT64[1], FP32[1], FP32[5], BOOL[1]',
    makes: 'STRING[1], FP32[1], STRING[1], STRING[1], STRING[-1]',
    does: 'a report of the results of three networks',
    expressed: TEXTS,
  },
  {
    rows: [6],
    takes: 'STRING[1], INT32[-1], INT32[-1,2]',
    makes: 'BOOL[-1], STRING[-1], STRING[-1]',
    does: 'cuts the words that tokens stand for out of a text',
    expressed: 'no built-in cuts texts at places',
  },
  {
    rows: [7],
    takes: 'STRING[1]',
    makes: 'INT32[-1], INT32[-1], INT32[-1], INT32[-1,2]',
    does: 'tokens of a text, and where each stands in it',
    expressed: '`tokenize` does not tell where tokens stand in the text',
  },
  {
    rows: [9],
    takes: 'STRING[1], STRING[1]',
    makes: 'STRING[1]',
    does: 'a text about a picture',
    expressed: NETWORK,
  },
  {
    rows: [10],
    takes: 'STRING[1]',
    makes: 'STRING[1], FP32[1]',
    does: 'the class of a picture',
    expressed: NETWORK,
  },
  {
    rows: [29],
    takes: 'FP16[1,-1,-1,3]',
    makes: 'FP16[1,-1,4], FP16[1,-1,2], FP16[1,-1,10], FP16[1,1,-1]',
    does: 'boxes, scores and points of faces',
    expressed: NETWORK,
  },
  {
    rows: [31],
    takes: 'INT64[-1], INT64[-1]',
    makes: 'FP32[1024]',
    does: 'an embedding of tokens',
    expressed: NETWORK,
  },
  {
    rows: [49],
    takes: 'INT32[-1,-1], INT32[-1,-1]',
    makes: 'INT32[-1,-1]',
    does: 'generates tokens',
    expressed: NETWORK,
  },
  {
    rows: [35],
    takes: 'STRING[-1,5], FP32[1], FP32[1]',
    makes: 'STRING[-1,6]',
    does: 'computes with numbers that are written as texts',
    expressed: 'no built-in reads numbers from texts, or writes them',
  },
  {
    rows: [37],
    takes: 'FP32[-1,27,11267], FP32[1], STRING[1], FP32[1,-1,4], FP32[-1,-1]',
    makes: 'STRING[1], STRING[-1,-1], FP32[-1,4], FP32[-1,4], FP32[1]',
    does: 'reads crops, and draws what it has read into the picture',
    expressed: 'no built-in draws',
  },
  {
    rows: [39],
    takes: '(auto)',
    makes: 'FP32[-1,-1,43], FP32[1], FP32[-1,-1,4], STRING[-1,5], FP32[-1,4]',
    does: 'features of the lines of a page',
    expressed: TEXTS,
  },
  {
    rows: [41],
    takes: 'FP32[-1], INT32[1]',
    makes: 'FP32[-1,80], INT64[1]',
    does: 'a spectrum of 80 bands',
    expressed: AUDIO,
  },
  {
    rows: [42],
    takes: 'FP32[-1,-1], INT64[1]',
    makes: 'FP32[-1,384], INT64[1]',
    does: 'calls an encoder of speech, part by part',
    expressed: AUDIO,
  },
  {
    rows: [43],
    takes: 'FP32[-1,384], INT64[1]',
    makes: 'STRING[1]',
    does: 'searches for the text of speech, with calls of networks for each letter',
    expressed: 'a search whose every step calls networks',
  },
  {
    rows: [52],
    takes: '(auto)',
    makes: '(auto)',
    does: 'unknown',
    expressed: 'the row tells nothing',
  },
  {
    rows: [53],
    takes: '(auto)',
    makes: '(auto)',
    does: 'unknown',
    expressed: 'the row tells nothing',
  },
  {
    rows: [64],
    takes: 'FP32[-1,-1], UINT8[-1]',
    makes: 'STRING[-1]',
    does: 'a text about each object of a detector',
    expressed: TEXTS,
  },
]

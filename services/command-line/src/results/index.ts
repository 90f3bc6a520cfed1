export { absent, DoctorResult, defineFindings, type Finding, renderFindings } from './finding.ts'
export { known, readonlyListOf } from './result-schema.ts'
export { countCharacters, cutToWidth, fitText, toColumns } from './text-table.ts'

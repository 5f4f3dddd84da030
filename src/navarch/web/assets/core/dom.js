// The one place that names the vendored library, so that a new version changes one line.
export {
  Component, createContext, h, html, render, useCallback, useContext, useEffect, useErrorBoundary, useLayoutEffect, useMemo, useReducer,
  useRef, useState,
} from "../vendor/htm-preact-standalone.js";

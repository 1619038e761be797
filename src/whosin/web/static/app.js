// Sliders beside their numbers, fields that belong to a choice, and what can be said about files before they are sent.
"use strict";

(() => {
  const position = (slider, value) => {
    const low = Number(slider.dataset.low), high = Number(slider.dataset.high);
    if (slider.dataset.scale !== "log") return (1000 * (value - low)) / (high - low);
    return value <= low ? 0 : (1000 * Math.log(value / low)) / Math.log(high / low);
  };

  const valueAt = (slider, number) => {
    const low = Number(slider.dataset.low), high = Number(slider.dataset.high), share = Number(slider.value) / 1000;
    const least = Number(number.min);
    // the left end of a logarithmic slider stands for zero where zero can be typed
    if (slider.dataset.scale === "log" && share === 0 && least === 0) return 0;
    const value = slider.dataset.scale === "log" ? low * Math.pow(high / low, share) : low + share * (high - low);
    return "whole" in slider.dataset ? Math.round(value) : Number(value.toPrecision(3));
  };

  const tell = (slider, number) => slider.setAttribute("aria-valuetext", number.value);

  // a number that does not fit is not sent, so the answer stays that of an earlier one: say so beside it
  const judge = (number) => {
    const place = document.getElementById(`${number.id}-problem`), fits = number.checkValidity();
    const kind = number.step === "1" ? "a whole number" : "a number";
    number.setAttribute("aria-invalid", String(!fits));
    place.textContent = fits
      ? ""
      : `This must be ${kind} from ${number.min} to ${number.max}. The answer shown is that of the last one that fitted.`;
    place.hidden = fits;
  };

  const follow = (slider) => {
    const number = document.getElementById(slider.dataset.for);
    slider.value = position(slider, Number(number.value));
    tell(slider, number);
    judge(number);
  };

  const pair = (slider) => {
    const number = document.getElementById(slider.dataset.for);
    slider.addEventListener("input", () => {
      number.value = valueAt(slider, number);
      tell(slider, number);
      judge(number);
    });
    number.addEventListener("input", () => follow(slider));
  };

  const choose = (form, name) => {
    const chosen = form.querySelector(`input[name="${name}"]:checked`);
    for (const set of form.querySelectorAll(`fieldset[data-shown-for^="${name}="]`)) {
      const fits = set.dataset.shownFor.slice(name.length + 1).split(",").includes(chosen && chosen.value);
      set.hidden = !fits;
      set.disabled = !fits;
    }
  };

  // what the fields show, and with it what hangs on them; the browser puts back on its own what was typed before
  const settle = () => {
    document.querySelectorAll('input[type="range"][data-for]').forEach(follow);
    document.querySelectorAll("input[data-switch]").forEach((input) => choose(input.form, input.dataset.switch));
  };

  // the address holds the values that are asked about, so that Back, a reload and a link lead to their answer
  const watchQuestion = (form) => {
    const sentence = document.getElementById("sentence"), answer = document.getElementById("answer");
    form.addEventListener("htmx:beforeRequest", () => {
      const values = new URLSearchParams(new FormData(form)).toString();
      history.replaceState(history.state, "", location.pathname + (values && `?${values}`));
    });
    // the reason stands where the answer would
    form.addEventListener("htmx:responseError", () => { sentence.textContent = "There is no answer for these values."; });
    form.addEventListener("htmx:sendError", () => {
      sentence.textContent = "The server did not answer. Is it still running?";
      answer.replaceChildren();
    });
  };

  // a file that is read here, into a field that can be seen and changed
  const fill = async (field) => {
    const place = document.getElementById(field.dataset.into), file = field.files[0];
    if (!file) return;
    place.value = (await file.text()).slice(0, place.maxLength);
    place.dispatchEvent(new Event("input", {bubbles: true}));
  };

  const isAsServed = (form) =>
    [...form.elements].every((field) =>
      ["radio", "checkbox"].includes(field.type)
        ? field.checked === field.defaultChecked
        : field.type === "select-one"
          ? field.selectedOptions[0].defaultSelected
          : field.type === "range" || field.value === field.defaultValue);

  const problem = (form, text) => {
    const place = form.querySelector("#problem");
    place.textContent = text;
    place.hidden = !text;
  };

  const tooLarge = (form) => {
    const most = Number(form.dataset.mostBytes);
    for (const field of form.querySelectorAll('input[type="file"]:enabled')) {
      for (const file of field.files) {
        if (file.size > most) return `${file.name} is larger than ${most / 1e6} MB.`;
      }
    }
    return "";
  };

  const watchUpload = (form) => {
    const sending = document.getElementById("sending"), sent = document.getElementById("sent");
    form.addEventListener("htmx:configRequest", (event) => {
      event.detail.parameters.delete("what");
      for (const field of form.querySelectorAll("input:enabled, select:enabled")) {
        if (field.type !== "file" && field.value === "") event.detail.parameters.delete(field.name);
      }
      for (const field of form.querySelectorAll('input[type="file"]:enabled')) {
        if (!field.files.length) event.detail.parameters.delete(field.name);
      }
    });
    form.addEventListener("htmx:beforeRequest", (event) => {
      const wrong = tooLarge(form);
      problem(form, wrong);
      if (wrong) event.preventDefault();
      else if (event.target === form) {
        sending.hidden = false;
        document.getElementById("status").replaceChildren();
      }
    });
    form.addEventListener("htmx:xhr:progress", (event) => {
      if (event.detail.lengthComputable) sent.value = (100 * event.detail.loaded) / event.detail.total;
    });
    form.addEventListener("htmx:afterRequest", (event) => {
      if (event.target !== form) return;
      sending.hidden = true;
      sent.value = 0;
    });
    form.addEventListener("htmx:sendError", () => problem(form, "The server did not answer. Is it still running?"));
  };

  // the address becomes that of the audit, so that a reload, Back and a second tab lead to it
  const nameAddress = (audit) => {
    if (!audit.id.startsWith("audit-") || !["/audit", "/scores"].includes(location.pathname)) return;
    history.replaceState(history.state, "", `/audit/${audit.id.slice("audit-".length)}`);
  };

  // what has just ended comes into view, with the focus on its heading, unless somebody types elsewhere
  let shownState = "";
  const noteChange = (event) => {
    const audit = event.target.querySelector ? document.querySelector("#status .audit") : null;
    if (!audit) return;
    const state = `${audit.id} ${audit.dataset.state}`;
    if (state === shownState) return;
    shownState = state;
    nameAddress(audit);
    document.body.dispatchEvent(new Event("audit-changed"));
    const typing = document.activeElement && document.activeElement.matches("input, select, textarea");
    if (["queued", "running"].includes(audit.dataset.state) || typing) return;
    audit.querySelector("h2").focus({preventScroll: true});
    audit.scrollIntoView({block: "start"});
  };

  // what the files hold is asked for as soon as all of them are chosen, unless they are large, and again when it changes
  const SHOWN_BY = "#person, #columns, #ignore, #keep, #categories, #separator, #encoding, #decimal, #missing, #header, "
    + "#skip_lines, #member_column, #member_value";
  const EASY = 5e6;
  const lookAhead = (form) => {
    const needed = [...form.querySelectorAll('input[type="file"]:enabled')].filter((field) => field.required);
    const sizes = needed.map((field) => (field.files.length ? field.files[0].size : Infinity));
    if (sizes.every((size) => size <= EASY)) htmx.trigger("#look", "click");
  };

  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll('input[type="range"][data-for]').forEach(pair);
    document.querySelectorAll("input[data-switch]").forEach((input) => {
      input.addEventListener("input", () => choose(input.form, input.dataset.switch));
    });
    document.querySelectorAll("input[data-into]").forEach((field) => field.addEventListener("change", () => fill(field)));
    settle();
    document.querySelectorAll("form[hx-get]").forEach(watchQuestion);
    const upload = document.getElementById("upload");
    if (upload) {
      watchUpload(upload);
      if (document.getElementById("look")) {
        upload.querySelectorAll(`input[type="file"], ${SHOWN_BY}`).forEach((field) => field.addEventListener("change", () => lookAhead(upload)));
      }
    }
    document.body.addEventListener("htmx:afterSettle", noteChange);
  });

  window.addEventListener("pageshow", (event) => {
    settle();
    document.querySelectorAll("form[hx-get]").forEach((form) => {
      if (event.persisted || !isAsServed(form)) htmx.trigger(form, "submit");
    });
  });
})();
